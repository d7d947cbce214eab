-- What devices did around their messages, as CTE `journey`: bits of units. Rules: docs/reports.md
-- "Influenced, converted, time to open". Placeholder `life of no message` is the launches and
-- conversions that name no message, as `e`.
life AS (
    SELECT tapline.unit_device(target) AS device, event_time AS at, type, key
    FROM joined WHERE states & (5 << 14) <> 0
    UNION ALL
    SELECT tapline.unit_device(e.unit), e.event_time, e.type, e.key FROM <life of no message>
), step AS (
    -- The life of each device: 1 a message came, 2 it was clicked, 3 the app was launched, 4 something
    -- was bought.
    SELECT device, at, CASE type WHEN 14 THEN 3 ELSE 4 END AS kind, NULL::uuid AS unit, key,
        true AS is_loud, true AS is_unclicked
    FROM life
    UNION ALL
    SELECT *
    FROM (
        SELECT tapline.unit_device(unit) AS device, coalesce(observed_at, sent_at), 1, unit,
            NULL::uuid, states & (1 << 22) = 0, states & (1 << 20) = 0
        FROM whole
        WHERE coalesce(observed_at, sent_at) IS NOT NULL AND states & (<delivered>) <> 0
        UNION ALL
        SELECT tapline.unit_device(target), event_time, 2, target, key, true, true
        FROM joined WHERE states & (1 << 20) <> 0 AND states & (5 << 14) = 0
    ) m
    -- Where a device did nothing after its messages there is nothing to find.
    WHERE device IN (SELECT device FROM life)
), near AS (
    SELECT device, at, kind, unit, is_loud, is_unclicked,
        -- The click that a conversion follows, as the click's number on its device.
        count(*) FILTER (WHERE kind = 2) OVER (
            PARTITION BY device ORDER BY at, kind, key ROWS UNBOUNDED PRECEDING) AS touch,
        max(at) FILTER (WHERE kind = 2) OVER (PARTITION BY device ORDER BY at) AS click_before,
        min(at) FILTER (WHERE kind = 2) OVER (PARTITION BY device ORDER BY at DESC) AS click_after
    FROM step WHERE device <> '\x0000000000000000'
), following AS (
    SELECT kind, unit, at, is_unclicked,
        min(at) FILTER (WHERE kind = 3) OVER after AS launch_at,
        min(at) FILTER (WHERE kind = 1 AND is_loud) OVER after AS message_at
    FROM near
    -- A launch within 5 s of a click is the click's.
    WHERE kind = 1 OR kind = 3
        AND coalesce(at - click_before > interval '5 seconds', true)
        AND coalesce(click_after - at > interval '5 seconds', true)
    WINDOW after AS (PARTITION BY device ORDER BY at DESC
        RANGE BETWEEN UNBOUNDED PRECEDING AND interval '1 microsecond' PRECEDING)
), touched AS (
    SELECT kind, at, first_value(unit) OVER click AS unit, first_value(at) OVER click AS click_at
    FROM near WHERE touch > 0 AND kind IN (2, 4)
    WINDOW click AS (PARTITION BY device, touch ORDER BY at, kind ROWS UNBOUNDED PRECEDING)
), journey AS (
    SELECT unit, bit_or(states) AS states
    FROM (
        SELECT unit,
            (1 << 23) | CASE WHEN launch_at <= at + interval '1 minute' THEN 1 << 25 ELSE 0 END
                AS states
        FROM following
        WHERE kind = 1 AND is_unclicked AND launch_at <= at + interval '12 hours'
            AND (message_at IS NULL OR message_at >= launch_at)
        UNION ALL
        SELECT unit, 1 << 24 FROM touched
        WHERE kind = 4 AND at <= click_at + <conversion window>) j
    GROUP BY unit
),
