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
    UPDATE tapline.turn SET generation = generation + 1, cells_since = newest,
        cells_format = <format>;
    DELETE FROM tapline.cell_campaign;
    DELETE FROM tapline.cell_change;
    DELETE FROM tapline.cell_past;
    DELETE FROM tapline.cell;
    DELETE FROM tapline.cell_quarter;
    DELETE FROM tapline.cell_hour;
    DELETE FROM tapline.cell_dimension;
    DELETE FROM tapline.cell_time;
    -- How many events a unit has in a segment is found when that is closed, and does not change.
    DROP TABLE IF EXISTS pg_temp.heavy;
    CREATE TEMP TABLE heavy ON COMMIT DROP AS
    SELECT unit, segment FROM tapline.special_unit WHERE is_heavy;
    DELETE FROM tapline.special_unit;
    DELETE FROM tapline.sending_app;
    -- First, so that a device marked from now on stays to be applied.
    UPDATE tapline.test_device SET applied = true WHERE NOT applied;

    -- Every unit, as if it hung on no other.
    DROP TABLE IF EXISTS pg_temp.folded;
    CREATE TEMP TABLE folded ON COMMIT DROP AS
    SELECT unit, app,
        floor(extract(epoch FROM coalesce(sent_at, first_at)) / 900)::int AS quarter,
        states, clicked, opening, late, late_types, campaign_id, <dimensions>, sends,
        disagreed AND NOT mixed AS varied,
        coalesce(campaign_id <> campaign_max, false) OR mixed AND disagreed OR differed
            -- More do not fit where the loader keeps them.
            OR clicked >= 255 OR opening >= 255 OR late > 7 AS special
    FROM (
        SELECT unit, min(app COLLATE "C") AS app,
            min(event_time) AS first_at, min(event_time) FILTER (WHERE type = 1) AS sent_at,
            bit_or(states) AS states,
            count(*) FILTER (WHERE type = 7)::int AS clicked,
            count(*) FILTER (WHERE states & (1 << 18) <> 0)::int AS opening,
            count(*) FILTER (WHERE late)::int AS late,
            -- Three bits for each type, of units with few.
            CASE WHEN count(*) FILTER (WHERE late) BETWEEN 1 AND 7
                THEN (sum(1::bigint << 3 * type) FILTER (WHERE late))::bigint ELSE 0 END AS late_types,
            bool_or(type = 1 AND campaign_id IS NOT NULL) AS sends,
            min(campaign_id COLLATE "C") AS campaign_id,
            max(campaign_id COLLATE "C") AS campaign_max,
            min(platform COLLATE "C") AS platform, min(app_version COLLATE "C") AS app_version,
            min(os_version COLLATE "C") AS os_version, min(locale COLLATE "C") AS locale,
            min(country COLLATE "C") AS country, min(provider COLLATE "C") AS provider,
            min(action_id COLLATE "C") AS action_id, min(category_id COLLATE "C") AS category_id,
            min(push_group COLLATE "C") AS push_group, min(topic COLLATE "C") AS topic,
            coalesce(min(action_id COLLATE "C") <> max(action_id COLLATE "C"), false)
                OR coalesce(min(category_id COLLATE "C") <> max(category_id COLLATE "C"), false)
                OR coalesce(min(push_group COLLATE "C") <> max(push_group COLLATE "C"), false)
                OR coalesce(min(topic COLLATE "C") <> max(topic COLLATE "C"), false)
                AS differed,
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
                CASE WHEN type = 8 THEN coalesce(action_id, '') END AS action_id, category_id,
                tapline.group_properties(properties)::json ->> 'push_group' AS push_group,
                tapline.group_properties(properties)::json ->> 'topic' AS topic,
                tapline.event_states(type, opened.it, is_test, silent, platform, type_raw)
                    | CASE WHEN type <> 8 AND action_id IS NOT NULL THEN 1 << 17 ELSE 0 END
                    | CASE WHEN type = 8 AND opened.it THEN 1 << 18 ELSE 0 END AS states,
                tapline.event_is_late(received_at, event_time) AS late,
                -- Which dimensions the event bears; null where it bears none.
                nullif((platform IS NOT NULL)::int + 2 * (app_version IS NOT NULL)::int
                    + 4 * (os_version IS NOT NULL)::int + 8 * (locale IS NOT NULL)::int
                    + 16 * (country IS NOT NULL)::int + 32 * (provider IS NOT NULL)::int, 0)
                    AS present
            FROM tapline.event,
                LATERAL (SELECT tapline.opens_app(type, opens_app, app, category_id, action_id)) opened(it)
            WHERE message_uid IS NOT NULL) e
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
    SELECT unit FROM heavy
    UNION
    -- Marks of test devices come and go.
    SELECT unit FROM folded
    WHERE tapline.unit_device(unit) IN (
        SELECT tapline.hash64(app, device_id) FROM tapline.test_device WHERE applied);
    ANALYZE special;

    INSERT INTO tapline.special_unit (unit, segment, batch, is_heavy)
    SELECT DISTINCT e.unit, e.segment, newest,
        EXISTS (SELECT FROM heavy h WHERE h.unit = e.unit AND h.segment = e.segment)
    FROM tapline.event e JOIN special s ON s.unit = e.unit;
    INSERT INTO tapline.sending_app (app, batch)
    SELECT DISTINCT app, newest FROM folded WHERE states & (1 << 1) <> 0;
    -- Clicks and late events are counted with their type, and a unit with the first of these.
    -- OFFSET 0: the cells are to be sorted, not the units.
    INSERT INTO tapline.cell (segment, quarter, states, units, clicks, late, app, campaign_id,
        <dimensions>)
    WITH plain AS (
        SELECT f.*, CASE WHEN clicked > 0 THEN 7 WHEN opening > 0 THEN 8 WHEN late_types = 0 THEN 0
            ELSE (SELECT min(t) FROM generate_series(0, 16) t WHERE late_types >> 3 * t & 7 <> 0)
            END AS main
        FROM folded f WHERE NOT EXISTS (SELECT FROM special s WHERE s.unit = f.unit)
    ), part AS (
        SELECT quarter, states, main AS type, 1 AS units,
            CASE main WHEN 7 THEN clicked WHEN 8 THEN opening ELSE 0 END AS clicks,
            late_types >> 3 * main & 7 AS late, app, campaign_id, <dimensions>
        FROM plain
        UNION ALL
        SELECT quarter, states, t, 0, CASE t WHEN 8 THEN opening ELSE 0 END,
            late_types >> 3 * t & 7, app, campaign_id, <dimensions>
        FROM plain, generate_series(0, 16) t
        WHERE (late_types <> 0 OR clicked > 0 AND opening > 0) AND t <> main
            AND (late_types >> 3 * t & 7 <> 0 OR t = 8 AND opening > 0)
    )
    SELECT 0, * FROM (
        SELECT quarter, states | (type << 26) AS states, sum(units), sum(clicks), sum(late), app,
            campaign_id, <dimensions>
        FROM part GROUP BY quarter, states | (type << 26), app, campaign_id, <dimensions>
        OFFSET 0) c
    ORDER BY app COLLATE "default", campaign_id COLLATE "default", quarter;
    INSERT INTO tapline.cell_quarter (
        segment, quarter, states, units, clicks, late, app, campaign_id)
    SELECT 0, * FROM (
        SELECT quarter, states & <plain states> AS states, sum(units), sum(clicks), sum(late), app,
            campaign_id
        FROM tapline.cell GROUP BY quarter, states & <plain states>, app, campaign_id
        OFFSET 0) c
    ORDER BY app, campaign_id, quarter;
    INSERT INTO tapline.cell_hour (segment, hour, states, units, clicks, late, app, campaign_id)
    SELECT 0, quarter >> 2, states, sum(units), sum(clicks), sum(late), app, campaign_id
    FROM tapline.cell_quarter GROUP BY quarter >> 2, states, app, campaign_id
    ORDER BY app, campaign_id, quarter >> 2;
    INSERT INTO tapline.cell_dimension (segment, states, units, clicks, late, app, campaign_id,
        <dimensions>)
    SELECT 0, states, sum(units), sum(clicks), sum(late), app, campaign_id,
        <dimensions>
    FROM tapline.cell GROUP BY states, app, campaign_id, <dimensions>;
    INSERT INTO tapline.cell_time (segment, quarter, states, units, clicks, late, app, <dimensions>)
    SELECT 0, quarter, states, sum(units), sum(clicks), sum(late), app, <dimensions>
    FROM tapline.cell GROUP BY quarter, states, app, <dimensions>;
    INSERT INTO tapline.cell_campaign (app, campaign_id, states, units, clicks, late)
    SELECT app, campaign_id, states, sum(units), sum(clicks), sum(late)
    FROM tapline.cell_quarter GROUP BY app, campaign_id, states;
    PERFORM brin_summarize_new_values('tapline.cell_place'),
        brin_summarize_new_values('tapline.cell_quarter_place'),
        brin_summarize_new_values('tapline.cell_hour_place');
    ANALYZE tapline.cell, tapline.cell_quarter, tapline.cell_hour, tapline.cell_dimension, tapline.cell_time,
        tapline.cell_campaign, tapline.special_unit;
    DROP TABLE folded, link, loose, special, heavy;
END
$$;
COMMENT ON FUNCTION tapline.rebuild_cells IS
    'Makes cells, special units and sending apps anew from all events; loading waits meanwhile, reports do not'
