-- The report of now as a function, for dashboards and SQL clients (docs/reports.md, "From SQL"). It
-- runs the statement of the other files, whose parts are put in below; there $8 is the dimension next
-- to the campaign, and $9 whether rows are by campaign. Made anew whenever its text has changed, so
-- that it never falls behind those files.
DROP VIEW IF EXISTS reporting.campaign, reporting.campaign_day, reporting.campaign_names, reporting.events;
DROP FUNCTION IF EXISTS tapline.report;
CREATE FUNCTION tapline.report(
    dimensions text DEFAULT 'campaign',
    period_from timestamptz DEFAULT NULL, period_to timestamptz DEFAULT NULL,
    of_app text DEFAULT NULL, of_campaign text DEFAULT NULL,
    time_zone text DEFAULT 'UTC', include_test boolean DEFAULT false,
    rows_max bigint DEFAULT 1000000
) RETURNS TABLE (
    is_total boolean, app text, campaign_id text, dimension text, flags text,
    sent bigint, failed bigint, accepted bigint, observed bigint, delivered bigint, implied bigint,
    clicked bigint, clicks_total bigint, actions bigint, dismissed bigint, inbox_opened bigint,
    engaged bigint, test_excluded bigint, late bigint, clicks_without_send bigint,
    failed_but_clicked bigint,
    delivery_rate double precision, ctr_delivered double precision,
    ctr_delivered_low double precision, ctr_delivered_high double precision,
    ctr_sent double precision, ctr_accepted double precision,
    engagement_rate double precision, dismiss_rate double precision
)
LANGUAGE plpgsql STABLE
SET timezone = 'UTC' SET jit = off SET enable_mergejoin = off SET enable_sort = off
SET work_mem = '128MB' SET enable_nestloop = on
AS $report$
DECLARE
    words text[] := string_to_array(dimensions, ',');
    by_campaign boolean := 'campaign' = ANY (words);
    other text;
    is_by_time boolean;
    has_time boolean;
    newest bigint;
    statement text;
BEGIN
    words := array_remove(words, 'campaign');
    other := words[1];
    is_by_time := coalesce(other IN ('day', 'hour'), false);
    has_time := is_by_time OR period_from IS NOT NULL OR period_to IS NOT NULL;
    IF cardinality(words) > 1 OR NOT coalesce(other IN ('day', 'hour', 'platform', 'app_version',
        'os_version', 'locale', 'country', 'provider'), true)
    THEN
        RAISE EXCEPTION 'dimensions "%" are not campaign, one other, or both', dimensions
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- For this function alone: the clause SET above gives the caller's zone back.
    PERFORM set_config('timezone', time_zone, true);
    SELECT batch INTO STRICT newest FROM tapline.turn;
    -- Cells know of quarters of an hour, and of test devices once these are applied.
    IF EXISTS (
            SELECT FROM (VALUES (extract(epoch FROM period_from)), (extract(epoch FROM period_to)),
                (extract(timezone FROM now()))) t(seconds)
            WHERE seconds % 900 <> 0)
        OR EXISTS (SELECT FROM tapline.test_device WHERE NOT applied)
    THEN
        -- Events that the planner takes for a few hundred would be joined by comparing each with each.
        PERFORM set_config('enable_nestloop', 'off', true);
        statement := $part$<units of events>$part$;
    ELSE
        statement := CASE
            WHEN NOT has_time AND other IS NULL THEN $part$<cells by campaign>$part$
            WHEN NOT has_time THEN $part$<cells by dimension>$part$
            WHEN (other IS NULL OR is_by_time)
                AND tapline.hours_are_enough(period_from, period_to, is_by_time)
                THEN $part$<cells by hour>$part$
            WHEN NOT by_campaign AND of_campaign IS NULL THEN $part$<cells by time>$part$
            WHEN other IS NULL OR is_by_time THEN $part$<cells by quarter>$part$
            ELSE $part$<cells by all>$part$ END;
        IF EXISTS (SELECT FROM tapline.special_unit) THEN
            PERFORM set_config('enable_nestloop', 'off', true);
            statement := $part$<special>$part$ || statement || $part$<units of special>$part$;
        ELSE
            statement := statement || $part$<units of cells>$part$;
        END IF;
    END IF;
    RETURN QUERY EXECUTE 'WITH ' || $part$<zone>$part$ || statement || $part$<counts>$part$
    USING newest, period_from, period_to, of_app, of_campaign, include_test, rows_max, other,
        by_campaign;
END
$report$;
COMMENT ON FUNCTION tapline.report IS
    'The campaign report of now: the formulas of the command line, for dashboards and SQL clients'
