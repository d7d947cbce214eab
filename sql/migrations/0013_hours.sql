-- Reports by campaign and time read every cell by the quarter of an hour, three times as many as there are
-- by the hour, and added up with sums of type numeric.
CREATE AGGREGATE tapline.total(bigint) (
    SFUNC = int8pl, STYPE = bigint, INITCOND = '0', COMBINEFUNC = int8pl, PARALLEL = SAFE
);
COMMENT ON AGGREGATE tapline.total(bigint) IS
    'sum as a bigint, 0 of nothing: several times as fast as sum, whose result is numeric';

CREATE FUNCTION tapline.zone_shift(quarter int) RETURNS int
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT floor(extract(timezone FROM to_timestamp(quarter * 900::float8)) / 900)::int
$$;
CREATE FUNCTION tapline.zone_shifts(OUT starts int[], OUT shifts int[])
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    IF current_setting('TimeZone') = 'UTC' THEN
        starts := '{}';
        shifts := '{0}';
        RETURN;
    END IF;
    -- Days first, then the quarters of those in which the offset changes. Events are of the ten years before they
    -- came, and of the five minutes after.
    WITH day AS (
        SELECT first, tapline.zone_shift(first) <> tapline.zone_shift(first + 96) AS has_change
        FROM generate_series(extract(epoch FROM timestamptz '2000-01-01 00:00Z')::int / 900,
            extract(epoch FROM now() + interval '2 years')::int / 900, 96) first
    ), change AS (
        SELECT quarter, tapline.zone_shift(quarter) AS shift
        FROM day, generate_series(first + 1, first + 96) quarter
        WHERE has_change AND tapline.zone_shift(quarter) <> tapline.zone_shift(quarter - 1)
    )
    SELECT coalesce(array_agg(quarter ORDER BY quarter), '{}'),
        tapline.zone_shift((SELECT min(first) FROM day)) || array_agg(shift ORDER BY quarter)
    INTO starts, shifts FROM change;
END
$$;
COMMENT ON FUNCTION tapline.zone_shift IS
    'how many quarters of an hour the session''s time zone is ahead of UTC at the beginning of a quarter';
COMMENT ON FUNCTION tapline.zone_shifts IS
    'the quarters at which zone_shift changes, and what it is before the first and from each on';

CREATE FUNCTION tapline.hours_are_enough(
    period_from timestamptz, period_to timestamptz, is_by_time boolean
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT NOT EXISTS (
            SELECT FROM (VALUES (period_from), (period_to)) t(bound)
            WHERE extract(epoch FROM bound) % 3600 <> 0)
        AND CASE WHEN is_by_time THEN NOT EXISTS (
            SELECT FROM tapline.zone_shifts(), unnest(starts || shifts) quarter
            WHERE quarter % 4 <> 0) ELSE true END
$$;
COMMENT ON FUNCTION tapline.hours_are_enough IS
    'whether a report needs no quarters of an hour: its period is of whole hours of UTC, and so are days and hours of the session''s time zone where rows are by these';

CREATE TABLE tapline.cell_hour (LIKE tapline.cell_quarter INCLUDING COMMENTS);
ALTER TABLE tapline.cell_hour RENAME quarter TO hour;
COMMENT ON TABLE tapline.cell_hour IS
    'tapline.cell_quarter by the hour, of UTC: serves reports by time where that is enough';
COMMENT ON COLUMN tapline.cell_hour.hour IS
    'hour since 1970 of the earliest sent of the units, else of the earliest event';
CREATE INDEX cell_hour_place ON tapline.cell_hour USING brin (app, campaign_id, hour)
    WITH (pages_per_range = 8);
COMMENT ON INDEX tapline.cell_hour_place IS 'serves reports of one campaign or a period';

-- Until the functions that fill them are made anew nobody merges: the hours would lack it. Locks in the
-- order in which daemons of older versions take them.
SELECT pg_advisory_xact_lock(hashtextextended('tapline.cells', 0));
DROP FUNCTION IF EXISTS tapline.merge_cells, tapline.rebuild_cells;
INSERT INTO tapline.cell_hour (segment, hour, states, units, clicks, late, app, campaign_id)
SELECT segment, quarter >> 2, states, sum(units), sum(clicks), sum(late), app, campaign_id
FROM tapline.cell_quarter GROUP BY segment, quarter >> 2, states, app, campaign_id
HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
ORDER BY segment, app, campaign_id, quarter >> 2;
SELECT brin_summarize_new_values('tapline.cell_hour_place');
ANALYZE tapline.cell_hour
