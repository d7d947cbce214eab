-- Cells: counts of the units that are alike, in place of a table of units. A load transaction adds
-- what it changes to them, so they are right in every snapshot. They can be thrown away and made
-- again from the events; why they look like this: docs/storage.md.
-- What a report counts is defined by sql/report/exact.sql alone: a unit is in a cell only where that
-- is certain to say the same, and every other unit is special and computed from its events.

CREATE TABLE tapline.cell_campaign (
    app text NOT NULL,
    campaign_id text,
    states int NOT NULL,
    units bigint NOT NULL,
    clicks bigint NOT NULL,
    late bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (app, campaign_id, states)
) WITH (fillfactor = 50);
COMMENT ON TABLE tapline.cell_campaign IS
    'Units that are not special, counted by campaign: all of them, at every moment; upserted by each load transaction';
COMMENT ON COLUMN tapline.cell_campaign.campaign_id IS 'null where no event of the units names one';
COMMENT ON COLUMN tapline.cell_campaign.states IS
    'bits of tapline.event_states, of all events of a unit';
COMMENT ON COLUMN tapline.cell_campaign.units IS 'how many units; a row of zeros means nothing';
COMMENT ON COLUMN tapline.cell_campaign.clicks IS 'their click events, repeats included';
COMMENT ON COLUMN tapline.cell_campaign.late IS
    'their events that arrived more than 24 hours late';

CREATE TABLE tapline.cell_change (
    segment int NOT NULL,
    quarter int NOT NULL,
    states int NOT NULL,
    units int NOT NULL,
    clicks int NOT NULL,
    late int NOT NULL,
    app text NOT NULL,
    campaign_id text,
    platform text,
    app_version text,
    os_version text,
    locale text,
    country text,
    provider text
);
COMMENT ON TABLE tapline.cell_change IS
    'What load transactions added to cells (units, clicks and late have a sign) since their segment was opened: with tapline.cell all of them, at every moment';
COMMENT ON COLUMN tapline.cell_change.segment IS 'the segment that was open when it was written';
COMMENT ON COLUMN tapline.cell_change.quarter IS
    'quarter of an hour since 1970 of the earliest sent of the units, else of the earliest event';

CREATE TABLE tapline.cell (
    quarter int NOT NULL,
    states int NOT NULL,
    units int NOT NULL,
    clicks int NOT NULL,
    late int NOT NULL,
    app text NOT NULL,
    campaign_id text,
    platform text,
    app_version text,
    os_version text,
    locale text,
    country text,
    provider text
);
COMMENT ON TABLE tapline.cell IS
    'tapline.cell_change of closed segments, merged: a run of rows for each, by app, campaign and quarter';

CREATE TABLE tapline.cell_quarter (
    quarter int NOT NULL,
    states int NOT NULL,
    units int NOT NULL,
    clicks int NOT NULL,
    late int NOT NULL,
    app text NOT NULL,
    campaign_id text
);
COMMENT ON TABLE tapline.cell_quarter IS
    'tapline.cell without the dimensions: serves reports by time';

-- Rows come in runs that are sorted, so a few pages hold what a campaign or a week needs.
CREATE INDEX cell_place ON tapline.cell USING brin (app, campaign_id, quarter)
    WITH (pages_per_range = 8);
COMMENT ON INDEX tapline.cell_place IS 'serves reports of one campaign or a period, by a dimension';
CREATE INDEX cell_quarter_place ON tapline.cell_quarter USING brin (app, campaign_id, quarter)
    WITH (pages_per_range = 8);
COMMENT ON INDEX tapline.cell_quarter_place IS 'serves reports of one campaign or a period';

CREATE TABLE tapline.special_unit (
    unit uuid NOT NULL,
    segment int NOT NULL,
    batch bigint NOT NULL,
    is_heavy boolean NOT NULL DEFAULT false,
    PRIMARY KEY (unit, segment)
);
COMMENT ON TABLE tapline.special_unit IS
    'Units that are in no cell, so that reports compute them from their events: a row for each segment that holds events of one';
COMMENT ON COLUMN tapline.special_unit.batch IS
    'the load transaction that wrote the row: other daemons read what is new';
COMMENT ON COLUMN tapline.special_unit.is_heavy IS
    'the segment holds so many events of the unit that the loader asks it for single keys, which are in its filter';
CREATE INDEX special_unit_batch ON tapline.special_unit (batch);
COMMENT ON INDEX tapline.special_unit_batch IS 'serves daemons that catch up with others';
CREATE INDEX special_unit_heavy ON tapline.special_unit (unit) WHERE is_heavy;
COMMENT ON INDEX tapline.special_unit_heavy IS 'serves the loader before it reads a unit';

CREATE TABLE tapline.batch_news (
    batch bigint PRIMARY KEY,
    events bytea NOT NULL
);
ALTER TABLE tapline.batch_news ALTER events SET STORAGE EXTERNAL;
COMMENT ON TABLE tapline.batch_news IS
    'The events of a batch of the open segment without their texts, for the daemons that did not load it; written while there are several';

ALTER TABLE tapline.segment ADD filter bytea;
-- Its bits are random: compressing them would only cost time.
ALTER TABLE tapline.segment ALTER filter SET STORAGE EXTERNAL;
COMMENT ON COLUMN tapline.segment.filter IS
    'Bloom filter of the keys of a closed segment; null: read them from the rows';
COMMENT ON COLUMN tapline.segment.state IS
    'open while it takes rows; closing: complete, with its indexes, and its cells not merged yet; then sealed';

ALTER TABLE tapline.turn ADD generation int NOT NULL DEFAULT 0;
COMMENT ON COLUMN tapline.turn.generation IS
    'raised when cells and special units were made anew: daemons then read them again';

ALTER TABLE tapline.test_device ADD applied boolean NOT NULL DEFAULT false;
COMMENT ON TABLE tapline.test_device IS 'Devices marked as test devices now';
COMMENT ON COLUMN tapline.test_device.applied IS
    'whether the units of the device are special; until then reports are made of all events';

-- Reports take the events they need by these two. A statement for each segment alone is planned in
-- less time than one over all of them, and its array of units has a size that the planner knows.
CREATE FUNCTION tapline.special_events() RETURNS SETOF tapline.event
LANGUAGE plpgsql STABLE AS $$
DECLARE
    open_segment int;
    number int;
    units uuid[];
BEGIN
    SELECT segment INTO STRICT open_segment FROM tapline.turn;
    FOR number, units IN
        SELECT segment, array_agg(unit) FROM tapline.special_unit GROUP BY segment
    LOOP
        IF number < open_segment THEN
            RETURN QUERY EXECUTE format(
                'SELECT * FROM tapline.event_%s WHERE unit = ANY ($1)', number)
            USING units;
        ELSE
            -- It has no index, so it is read once, for tapline.sent_campaigns too.
            RETURN QUERY EXECUTE format(
                'SELECT * FROM tapline.event_%s WHERE unit = ANY ($1) '
                'OR type = 1 AND campaign_id IS NOT NULL AND tapline.unit_message(unit) = ANY ($2)',
                number)
            USING units, (
                SELECT array_agg(DISTINCT tapline.unit_message(unit)) FROM tapline.special_unit);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION tapline.special_events IS
    'The events of special units; and where it reads the open segment, the sent events of their messages there that name a campaign';

CREATE FUNCTION tapline.sent_campaigns(messages bytea[])
RETURNS TABLE (message bytea, campaign_id text, event_time timestamptz, key uuid)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    open_segment int;
    number int;
BEGIN
    IF messages IS NULL THEN
        RETURN;
    END IF;
    SELECT segment INTO STRICT open_segment FROM tapline.turn;
    FOR number IN SELECT s.segment FROM tapline.segment s WHERE s.segment < open_segment LOOP
        RETURN QUERY EXECUTE format(
            $query$
            SELECT m.message, e.campaign_id, e.event_time, e.key
            FROM unnest($1) m(message) JOIN tapline.event e
                ON e.segment = %s AND e.unit >= encode(m.message || '\x0000000000000000', 'hex')::uuid
                AND e.unit <= encode(m.message || '\xffffffffffffffff', 'hex')::uuid
            WHERE e.type = 1 AND e.campaign_id IS NOT NULL
            $query$, number)
        USING messages;
    END LOOP;
    IF NOT EXISTS (SELECT FROM tapline.special_unit s WHERE s.segment = open_segment) THEN
        RETURN QUERY EXECUTE format(
            $query$
            SELECT tapline.unit_message(e.unit), e.campaign_id, e.event_time, e.key
            FROM tapline.event e
            WHERE e.segment = %s AND e.type = 1 AND e.campaign_id IS NOT NULL
                AND tapline.unit_message(e.unit) = ANY ($1)
            $query$, open_segment)
        USING messages;
    END IF;
END
$$;
COMMENT ON FUNCTION tapline.sent_campaigns IS
    'The sent events of some messages that name a campaign; without those in the open segment where tapline.special_events has them';

CREATE FUNCTION tapline.merge_cells() RETURNS int
LANGUAGE plpgsql SET jit = off SET work_mem = '128MB' AS $$
DECLARE
    open_segment int;
    done int;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('tapline.cells', 0)) THEN
        RETURN 0;
    END IF;
    -- A segment is closed under the lock that load transactions hold to their end, so whoever sees
    -- that one is open sees every change of those before it.
    SELECT segment INTO STRICT open_segment FROM tapline.turn;
    IF NOT EXISTS (
        SELECT FROM tapline.segment WHERE state = 'closing' AND segment < open_segment) THEN
        RETURN 0;
    END IF;
    -- In one statement, and not by TRUNCATE: a snapshot has each row once, here or there.
    WITH moved AS (
        DELETE FROM tapline.cell_change WHERE segment < open_segment RETURNING *
    ), merged AS (
        INSERT INTO tapline.cell (quarter, states, units, clicks, late, app, campaign_id,
            platform, app_version, os_version, locale, country, provider)
        SELECT quarter, states, sum(units), sum(clicks), sum(late), app, campaign_id,
            platform, app_version, os_version, locale, country, provider
        FROM moved
        GROUP BY quarter, states, app, campaign_id,
            platform, app_version, os_version, locale, country, provider
        HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
        ORDER BY app, campaign_id, quarter
        RETURNING quarter, states, units, clicks, late, app, campaign_id
    )
    INSERT INTO tapline.cell_quarter (quarter, states, units, clicks, late, app, campaign_id)
    SELECT quarter, states, sum(units), sum(clicks), sum(late), app, campaign_id
    FROM merged GROUP BY quarter, states, app, campaign_id
    HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
    ORDER BY app, campaign_id, quarter;
    PERFORM brin_summarize_new_values('tapline.cell_place'),
        brin_summarize_new_values('tapline.cell_quarter_place');

    UPDATE tapline.segment SET state = 'sealed'
    WHERE state = 'closing' AND segment < open_segment;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;
COMMENT ON FUNCTION tapline.merge_cells IS
    'Moves the changes of closed segments to tapline.cell and cell_quarter and seals them; returns how many it sealed, 0 where another session is at it';

CREATE FUNCTION tapline.rebuild_cells() RETURNS void
LANGUAGE plpgsql
SET jit = off SET work_mem = '256MB' SET enable_mergejoin = off SET enable_sort = off
SET client_min_messages = warning
AS $$
DECLARE
    newest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('tapline.cells', 0));
    SELECT batch INTO STRICT newest FROM tapline.turn FOR UPDATE;
    UPDATE tapline.turn SET generation = generation + 1;
    DELETE FROM tapline.cell_campaign;
    DELETE FROM tapline.cell_change;
    DELETE FROM tapline.cell;
    DELETE FROM tapline.cell_quarter;
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
                tapline.event_states(type, opens_app, is_test, silent) AS states,
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
    INSERT INTO tapline.sending_app (app)
    SELECT DISTINCT app FROM folded WHERE states & (1 << 1) <> 0;
    -- OFFSET 0: the cells are to be sorted, not the units.
    INSERT INTO tapline.cell (quarter, states, units, clicks, late, app, campaign_id,
        platform, app_version, os_version, locale, country, provider)
    SELECT * FROM (
        SELECT quarter, states, count(*), sum(clicks), sum(late), app, campaign_id,
            platform, app_version, os_version, locale, country, provider
        FROM folded f WHERE NOT EXISTS (SELECT FROM special s WHERE s.unit = f.unit)
        GROUP BY quarter, states, app, campaign_id,
            platform, app_version, os_version, locale, country, provider
        OFFSET 0) c
    ORDER BY app COLLATE "default", campaign_id COLLATE "default", quarter;
    INSERT INTO tapline.cell_quarter (quarter, states, units, clicks, late, app, campaign_id)
    SELECT * FROM (
        SELECT quarter, states, sum(units), sum(clicks), sum(late), app, campaign_id
        FROM tapline.cell GROUP BY quarter, states, app, campaign_id
        OFFSET 0) c
    ORDER BY app, campaign_id, quarter;
    INSERT INTO tapline.cell_campaign (app, campaign_id, states, units, clicks, late)
    SELECT app, campaign_id, states, sum(units), sum(clicks), sum(late)
    FROM tapline.cell_quarter GROUP BY app, campaign_id, states;
    PERFORM brin_summarize_new_values('tapline.cell_place'),
        brin_summarize_new_values('tapline.cell_quarter_place');
    ANALYZE tapline.cell, tapline.cell_quarter, tapline.cell_campaign, tapline.special_unit;
    DROP TABLE folded, link, loose, special;
END
$$;
COMMENT ON FUNCTION tapline.rebuild_cells IS
    'Makes cells, special units and sending apps anew from all events; loading waits meanwhile, reports do not';

-- As expressions that the planner can put in place of the call: with a FROM clause, each of the twelve
-- calls for a row of a report was a query of its own, and they took longer than all else.
CREATE FUNCTION tapline.wilson(k bigint, n bigint, z double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (k + z * z / 2 + z * sqrt(k::float8 * (n - k) / n + z * z / 4)) / (n + z * z)
$$;
COMMENT ON FUNCTION tapline.wilson IS 'a bound of the Wilson interval of k of n, n > 0; z < 0: the lower';
CREATE OR REPLACE FUNCTION tapline.wilson_low(k bigint, n bigint) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN n > 0 AND k = 0 THEN 0
        WHEN n > 0 AND k > 0 THEN greatest(0, tapline.wilson(k, n, -1.959963984540054)) END
$$;
CREATE OR REPLACE FUNCTION tapline.wilson_high(k bigint, n bigint) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN n > 0 AND k = n THEN 1
        WHEN n > 0 AND k < n THEN least(1, tapline.wilson(k, n, 1.959963984540054)) END
$$;

-- An older database is carried over: what was derived is made anew, and closed segments get the
-- indexes that the loader makes now in the transaction that closes one.
DROP FUNCTION tapline.fold_units;
DROP FUNCTION tapline.affected_units;
DROP TABLE tapline.unit, tapline.inbox_link, tapline.fold;
COMMENT ON TABLE tapline.sending_app IS
    'Apps that have logged a sent, at every moment: for the others SENT is unknown';

DO $$
DECLARE
    number int;
BEGIN
    FOR number IN
        SELECT segment FROM tapline.segment
        WHERE state <> 'open' AND to_regclass(format('tapline.event_%s', segment)) IS NOT NULL
        ORDER BY segment
    LOOP
        EXECUTE format(
            'CREATE UNIQUE INDEX IF NOT EXISTS event_%1$s_unit_key ON tapline.event_%1$s (unit, key)',
            number);
        EXECUTE format(
            'CREATE INDEX IF NOT EXISTS event_%1$s_inbox_unit ON tapline.event_%1$s (inbox_unit) '
            'WHERE inbox_unit IS NOT NULL', number);
    END LOOP;
END
$$;
SELECT tapline.rebuild_cells()
