-- What single events of units say, for each row and the totals: time to open, as CTE `opening`, and
-- which buttons were pressed, as CTE `pressed`. Their rows go by arrays of keys, as null = null there.
place AS (
    -- A whole unit (part 0) is in a row and in the totals.
    SELECT u.unit, p.part, u.piece_one, u.piece_two, u.states & (1 << 22) = 0 AS is_loud,
        CASE WHEN p.part = 1 THEN ARRAY[app, <campaign>, <one of unit>, <two of unit>] END AS key
    FROM unit u JOIN (VALUES (1), (2)) p(part) ON u.part IN (0, p.part)
    WHERE (NOT u.is_test OR $6::boolean) AND u.states & ((1 << 20) | (1 << 8)) <> 0
), first_click AS (
    SELECT DISTINCT ON (target) target, device_time, piece_one, piece_two, in_piece
    FROM joined WHERE states & (1 << 20) <> 0 ORDER BY target, event_time, key
), first_receipt AS (
    SELECT DISTINCT ON (j.target) j.target, j.device_time
    FROM joined j JOIN first_click c ON c.target = j.target
    WHERE j.states & (15 << 3) <> 0 ORDER BY j.target, j.event_time, j.key
),
-- Seconds from a unit's first receipt to its first click, on the device's own clock, whose error is in
-- both. Percentiles with linear interpolation; clicks that came first are left out and counted.
-- Placeholder `opened` is how many were soon enough, for each of some limits.
opening AS (
    SELECT part = 2 AS is_total, coalesce(key, ARRAY[NULL, NULL, NULL, NULL]::text[]) AS key,
        reversed, p[1] AS p50, p[2] AS p90, p[3] AS p99, opened
    FROM (
        SELECT part, key,
            percentile_cont(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY seconds)
                FILTER (WHERE seconds >= 0) AS p,
            count(*) FILTER (WHERE seconds < 0) AS reversed,
            concat_ws(' ', <opened>) AS opened
        FROM (
            SELECT p.part, p.key,
                extract(epoch FROM c.device_time - r.device_time)::float8 AS seconds
            FROM first_click c JOIN first_receipt r ON r.target = c.target
                JOIN place p ON p.unit = c.target AND (p.part = 2
                    OR p.piece_one IS NOT DISTINCT FROM c.piece_one
                        AND p.piece_two IS NOT DISTINCT FROM c.piece_two)
            WHERE c.in_piece AND tapline.unit_device(c.target) <> '\x0000000000000000'
            -- To be computed once a row, and not for each count.
            OFFSET 0) s
        WHERE seconds IS NOT NULL
        GROUP BY part, key) o
),
-- A text a row: category, action (hexadecimal, - for none) and how many units pressed it.
pressed AS (
    SELECT part = 2 AS is_total, coalesce(key, ARRAY[NULL, NULL, NULL, NULL]::text[]) AS key,
        string_agg(coalesce(encode(convert_to(category_id, 'UTF8'), 'hex'), '-') || ':'
                || coalesce(encode(convert_to(action_id, 'UTF8'), 'hex'), '-') || ':' || units, ' '
            ORDER BY units DESC, category_id COLLATE "C", action_id COLLATE "C") AS buttons
    FROM (
        SELECT p.part, p.key, j.category_id, j.action_id, count(DISTINCT j.target) AS units
        FROM joined j JOIN place p ON p.unit = j.target AND p.is_loud AND (p.part = 2
            OR p.piece_one IS NOT DISTINCT FROM j.piece_one
                AND p.piece_two IS NOT DISTINCT FROM j.piece_two)
        WHERE j.states & (1 << 8) <> 0 AND j.in_piece
        GROUP BY p.part, p.key, j.category_id, j.action_id) b
    GROUP BY part, key
)
