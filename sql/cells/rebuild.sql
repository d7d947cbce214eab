-- The second implementation of cells: from all events, in SQL. `sql/report/exact.sql` has the rules.
CREATE OR REPLACE FUNCTION tapline.rebuild_cells() RETURNS void
LANGUAGE plpgsql
SET jit = off SET work_mem = '256MB' SET enable_mergejoin = off SET enable_sort = off
SET client_min_messages = warning
AS $$
DECLARE
    newest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('tapline.cells', 0));
    SELECT batch INTO STRICT newest FROM tapline.turn FOR UPDATE;
    UPDATE tapline.turn SET generation = generation + 1, cells_since = newest;
    DELETE FROM tapline.cell_campaign;
    DELETE FROM tapline.cell_change;
    DELETE FROM tapline.cell_past;
    DELETE FROM tapline.cell;
    DELETE FROM tapline.cell_quarter;
    DELETE FROM tapline.cell_dimension;
    DELETE FROM tapline.cell_time;
    DELETE FROM tapline.special_unit;
    DELETE FROM tapline.sending_app;
    -- First, so that a device marked from now on stays to be applied.
    UPDATE tapline.test_device SET applied = true WHERE NOT applied;

    -- Every unit, as if it hung on no other.
    DROP TABLE IF EXISTS pg_temp.folded;
    CREATE TEMP TABLE folded ON COMMIT DROP AS
    SELECT unit, app,
        floor(extract(epoch FROM coalesce(sent_at, first_at)) / 900)::int AS quarter,
        states, clicks, late, campaign_id,
        platform, app_version, os_version, locale, country, provider, sends,
        disagreed AND NOT mixed AS varied,
        coalesce(campaign_id <> campaign_max, false) OR mixed AND disagreed AS special
    FROM (
        SELECT unit, min(app COLLATE "C") AS app,
            min(event_time) AS first_at, min(event_time) FILTER (WHERE type = 1) AS sent_at,
            bit_or(states) AS states,
            count(*) FILTER (WHERE states & (1 << 20) <> 0)::int AS clicks,
            count(*) FILTER (WHERE late)::int AS late,
            bool_or(type = 1 AND campaign_id IS NOT NULL) AS sends,
            min(campaign_id COLLATE "C") AS campaign_id,
            max(campaign_id COLLATE "C") AS campaign_max,
            min(platform COLLATE "C") AS platform, min(app_version COLLATE "C") AS app_version,
            min(os_version COLLATE "C") AS os_version, min(locale COLLATE "C") AS locale,
            min(country COLLATE "C") AS country, min(provider COLLATE "C") AS provider,
            coalesce(min(present) <> max(present), false) AS mixed,
            coalesce(min(platform COLLATE "C") <> max(platform COLLATE "C"), false)
                OR coalesce(min(app_version COLLATE "C") <> max(app_version COLLATE "C"), false)
                OR coalesce(min(os_version COLLATE "C") <> max(os_version COLLATE "C"), false)
                OR coalesce(min(locale COLLATE "C") <> max(locale COLLATE "C"), false)
                OR coalesce(min(country COLLATE "C") <> max(country COLLATE "C"), false)
                OR coalesce(min(provider COLLATE "C") <> max(provider COLLATE "C"), false)
                AS disagreed
        FROM (
            SELECT unit, app, event_time, type, campaign_id,
                platform, app_version, os_version, locale, country, provider,
                tapline.event_states(type,
                    tapline.opens_app(type, opens_app, app, category_id, action_id),
                    is_test, silent, platform, type_raw) AS states,
                tapline.event_is_late(received_at, event_time) AS late,
                -- Which dimensions the event bears; null where it bears none.
                nullif((platform IS NOT NULL)::int + 2 * (app_version IS NOT NULL)::int
                    + 4 * (os_version IS NOT NULL)::int + 8 * (locale IS NOT NULL)::int
                    + 16 * (country IS NOT NULL)::int + 32 * (provider IS NOT NULL)::int, 0)
                    AS present
            FROM tapline.event WHERE message_uid IS NOT NULL) e
        GROUP BY unit
    ) u;
    ANALYZE folded;
    -- Where events bear the same dimensions and differ in them, the earliest is right in all.
    UPDATE folded f SET platform = e.platform, app_version = e.app_version,
        os_version = e.os_version, locale = e.locale, country = e.country, provider = e.provider
    FROM (
        SELECT DISTINCT ON (e.unit) e.unit, e.platform, e.app_version, e.os_version, e.locale,
            e.country, e.provider
        FROM tapline.event e JOIN folded v ON v.unit = e.unit AND v.varied AND NOT v.special
        WHERE num_nonnulls(e.platform, e.app_version, e.os_version, e.locale, e.country,
            e.provider) > 0
        ORDER BY e.unit, e.event_time, e.key) e
    WHERE f.unit = e.unit;

    -- Which unit names which.
    DROP TABLE IF EXISTS pg_temp.link;
    CREATE TEMP TABLE link ON COMMIT DROP AS
    SELECT DISTINCT inbox_unit, unit FROM tapline.event
    WHERE inbox_unit IS NOT NULL AND message_uid IS NOT NULL;
    ANALYZE link;
    -- Messages with events whose device is to be found among the message's others.
    DROP TABLE IF EXISTS pg_temp.loose;
    CREATE TEMP TABLE loose ON COMMIT DROP AS
    SELECT tapline.unit_message(unit) AS message FROM folded
    WHERE tapline.unit_device(unit) = '\x0000000000000000'
    UNION
    SELECT tapline.unit_message(inbox_unit) FROM link
    WHERE tapline.unit_device(unit) = '\x0000000000000000';
    ANALYZE loose;

    DROP TABLE IF EXISTS pg_temp.special;
    CREATE TEMP TABLE special ON COMMIT DROP AS
    SELECT unit FROM folded WHERE special
    UNION
    SELECT f.unit FROM folded f JOIN loose l ON l.message = tapline.unit_message(f.unit)
    UNION
    SELECT k.unit FROM link k JOIN loose l ON l.message = tapline.unit_message(k.inbox_unit)
    UNION
    -- A unit without a campaign takes that of a sent on another device of its message.
    SELECT f.unit FROM folded f JOIN (
        SELECT DISTINCT tapline.unit_message(unit) AS message FROM folded WHERE sends) s
        ON s.message = tapline.unit_message(f.unit)
    WHERE f.campaign_id IS NULL
    UNION
    -- Inbox events may belong to the unit that names theirs, and to one of several that do.
    SELECT n.unit
    FROM folded x JOIN link k ON k.inbox_unit = x.unit AND k.unit <> x.unit,
        LATERAL (VALUES (x.unit), (k.unit)) n(unit)
    WHERE x.states & (15 << 10) <> 0
    UNION
    SELECT k.unit FROM link k JOIN (
        SELECT inbox_unit FROM link GROUP BY inbox_unit HAVING count(*) > 1) x
        ON x.inbox_unit = k.inbox_unit
    UNION
    -- Marks of test devices come and go.
    SELECT unit FROM folded
    WHERE tapline.unit_device(unit) IN (
        SELECT tapline.hash64(app, device_id) FROM tapline.test_device WHERE applied);
    ANALYZE special;

    INSERT INTO tapline.special_unit (unit, segment, batch)
    SELECT DISTINCT e.unit, e.segment, newest
    FROM tapline.event e JOIN special s ON s.unit = e.unit;
    INSERT INTO tapline.sending_app (app, batch)
    SELECT DISTINCT app, newest FROM folded WHERE states & (1 << 1) <> 0;
    -- OFFSET 0: the cells are to be sorted, not the units.
    INSERT INTO tapline.cell (segment, quarter, states, units, clicks, late, app, campaign_id,
        platform, app_version, os_version, locale, country, provider)
    SELECT 0, * FROM (
        SELECT quarter, states, count(*), sum(clicks), sum(late), app, campaign_id,
            platform, app_version, os_version, locale, country, provider
        FROM folded f WHERE NOT EXISTS (SELECT FROM special s WHERE s.unit = f.unit)
        GROUP BY quarter, states, app, campaign_id,
            platform, app_version, os_version, locale, country, provider
        OFFSET 0) c
    ORDER BY app COLLATE "default", campaign_id COLLATE "default", quarter;
    INSERT INTO tapline.cell_quarter (
        segment, quarter, states, units, clicks, late, app, campaign_id)
    SELECT 0, * FROM (
        SELECT quarter, states, sum(units), sum(clicks), sum(late), app, campaign_id
        FROM tapline.cell GROUP BY quarter, states, app, campaign_id
        OFFSET 0) c
    ORDER BY app, campaign_id, quarter;
    INSERT INTO tapline.cell_dimension (segment, states, units, clicks, late, app, campaign_id,
        platform, app_version, os_version, locale, country, provider)
    SELECT 0, states, sum(units), sum(clicks), sum(late), app, campaign_id,
        platform, app_version, os_version, locale, country, provider
    FROM tapline.cell GROUP BY states, app, campaign_id,
        platform, app_version, os_version, locale, country, provider;
    INSERT INTO tapline.cell_time (segment, quarter, states, units, clicks, late, app,
        platform, app_version, os_version, locale, country, provider)
    SELECT 0, quarter, states, sum(units), sum(clicks), sum(late), app,
        platform, app_version, os_version, locale, country, provider
    FROM tapline.cell GROUP BY quarter, states, app,
        platform, app_version, os_version, locale, country, provider;
    INSERT INTO tapline.cell_campaign (app, campaign_id, states, units, clicks, late)
    SELECT app, campaign_id, states, sum(units), sum(clicks), sum(late)
    FROM tapline.cell_quarter GROUP BY app, campaign_id, states;
    PERFORM brin_summarize_new_values('tapline.cell_place'),
        brin_summarize_new_values('tapline.cell_quarter_place');
    ANALYZE tapline.cell, tapline.cell_quarter, tapline.cell_dimension, tapline.cell_time,
        tapline.cell_campaign, tapline.special_unit;
    DROP TABLE folded, link, loose, special;
END
$$;
COMMENT ON FUNCTION tapline.rebuild_cells IS
    'Makes cells, special units and sending apps anew from all events; loading waits meanwhile, reports do not'
