-- Units: a fold of the events that makes reports fast, and can be thrown away and folded again.
-- What a report counts is defined by sql/report/exact.sql alone; a row here is used only where
-- it is certain to say the same, and every other unit is `special` and computed from its events.

-- What one event adds to the state of its unit: bit t is an event of type code t, then
-- bit 20 a click (`clicked`, or an `action` that opens the app), 21 is_test, 22 silent.
CREATE FUNCTION tapline.event_states(
    type smallint, opens_app boolean, is_test boolean, silent boolean
) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (1 << type)
        | CASE WHEN type = 7 OR (type = 8 AND opens_app) THEN 1 << 20 ELSE 0 END
        | CASE WHEN is_test THEN 1 << 21 ELSE 0 END
        | CASE WHEN silent THEN 1 << 22 ELSE 0 END
$$;
COMMENT ON FUNCTION tapline.event_states IS 'the bits that one event adds to the state of its unit';

CREATE FUNCTION tapline.event_is_late(received_at timestamptz, event_time timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT received_at - event_time > interval '24 hours'
$$;
COMMENT ON FUNCTION tapline.event_is_late IS 'did the event arrive more than 24 hours after it happened?';

-- The two halves of a unit (see tapline.event.unit).
CREATE FUNCTION tapline.unit_message(unit uuid) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT substr(uuid_send(unit), 1, 8) $$;
COMMENT ON FUNCTION tapline.unit_message IS 'the message half of a unit';

CREATE FUNCTION tapline.unit_device(unit uuid) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT substr(uuid_send(unit), 9, 8) $$;
COMMENT ON FUNCTION tapline.unit_device IS 'the device half of a unit; all zero without a device';

CREATE FUNCTION tapline.unit_of(message_half uuid, device_half uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(
        substr(uuid_send(message_half), 1, 8) || substr(uuid_send(device_half), 9, 8), 'hex')::uuid
$$;
COMMENT ON FUNCTION tapline.unit_of IS 'the unit of the message of one unit and the device of another';

CREATE FUNCTION tapline.message_first(unit uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(overlay(uuid_send(unit) PLACING '\x0000000000000000' FROM 9), 'hex')::uuid
$$;
COMMENT ON FUNCTION tapline.message_first IS 'the least unit of the same message: no device';

CREATE FUNCTION tapline.message_last(unit uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(overlay(uuid_send(unit) PLACING '\xffffffffffffffff' FROM 9), 'hex')::uuid
$$;
COMMENT ON FUNCTION tapline.message_last IS 'the greatest possible unit of the same message';

CREATE FUNCTION tapline.hash64(app text, id text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN half = '\x0000000000000000' THEN '\x0000000000000001' ELSE half END
    FROM (SELECT substr(sha256(
        int4send(octet_length(convert_to(app, 'UTF8'))) || convert_to(app, 'UTF8')
        || int4send(octet_length(convert_to(id, 'UTF8'))) || convert_to(id, 'UTF8')), 1, 8)) h(half)
$$;
COMMENT ON FUNCTION tapline.hash64 IS
    'a half of a unit, as the daemon computes it (Event/Identity.swift)';

CREATE TABLE tapline.unit (
    unit uuid NOT NULL,
    first_at timestamptz NOT NULL,
    sent_at timestamptz,
    states int NOT NULL,
    clicks int NOT NULL,
    late int NOT NULL,
    special boolean NOT NULL,
    app text NOT NULL,
    campaign_id text,
    platform text,
    app_version text,
    os_version text,
    locale text,
    country text,
    provider text,
    CONSTRAINT unit_pkey PRIMARY KEY (unit)
) WITH (fillfactor = 85);
COMMENT ON TABLE tapline.unit IS
    'One row a message on a device: the order-free merge of its events up to tapline.fold.batch';
COMMENT ON COLUMN tapline.unit.first_at IS 'earliest event_time of any event';
COMMENT ON COLUMN tapline.unit.sent_at IS 'earliest event_time of a sent event';
COMMENT ON COLUMN tapline.unit.states IS 'bits of tapline.event_states, of all events';
COMMENT ON COLUMN tapline.unit.clicks IS 'click events, repeats included';
COMMENT ON COLUMN tapline.unit.late IS 'events that arrived more than 24 hours late';
COMMENT ON COLUMN tapline.unit.special IS
    'the merge may differ from the exact result, so a report computes this unit from its events';
CREATE INDEX unit_special ON tapline.unit (unit) WHERE special;
COMMENT ON INDEX tapline.unit_special IS 'serves tapline.affected_units';
CREATE INDEX unit_orphan ON tapline.unit (unit) WHERE campaign_id IS NULL;
COMMENT ON INDEX tapline.unit_orphan IS
    'serves tapline.fold_units and affected_units: units that may take the campaign of a sibling';

CREATE TABLE tapline.inbox_link (
    inbox_unit uuid NOT NULL,
    unit uuid NOT NULL,
    PRIMARY KEY (inbox_unit, unit)
);
COMMENT ON TABLE tapline.inbox_link IS 'Which units name which inbox units; folded, like tapline.unit';
CREATE INDEX inbox_link_unit ON tapline.inbox_link (unit);
COMMENT ON INDEX tapline.inbox_link_unit IS 'serves tapline.affected_units';

CREATE TABLE tapline.sending_app (app text PRIMARY KEY);
COMMENT ON TABLE tapline.sending_app IS
    'Apps that have logged a sent, as folded: for the others SENT is unknown';

CREATE TABLE tapline.fold (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    batch bigint NOT NULL
) WITH (fillfactor = 10);
COMMENT ON TABLE tapline.fold IS 'How far events are folded into units: the newest batch';
INSERT INTO tapline.fold (batch) VALUES (0);

-- The plain merge has its one home here: what a chunk of events says of each unit (delta), and how
-- that joins what is known (changed). Both are free of order, so any chunking gives one result.
CREATE FUNCTION tapline.fold_units(events_max int) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    done tapline.fold;
    upto bigint;
    first_segment int;
    first_row tid;
    folded bigint;
    orphans uuid[];
    senders uuid[];
    in_inbox uuid[];
    naming uuid[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('tapline.fold_units', 0)) THEN
        RETURN 0;
    END IF;
    SELECT * INTO STRICT done FROM tapline.fold FOR UPDATE;
    SELECT max(batch) INTO upto FROM (
        SELECT batch, sum(rows) OVER (ORDER BY batch) - rows AS earlier
        FROM (SELECT batch, rows FROM tapline.batch
              WHERE batch > done.batch ORDER BY batch LIMIT 10000) b) c
    WHERE earlier < events_max;
    IF upto IS NULL THEN
        RETURN 0;
    END IF;
    SELECT segment, format('(%s,0)', min(first_block))::tid INTO first_segment, first_row
    FROM tapline.batch WHERE batch > done.batch AND batch <= upto
    GROUP BY segment ORDER BY segment LIMIT 1;

    WITH chunk AS MATERIALIZED (
        SELECT unit, event_time, type, app, campaign_id, inbox_unit, platform, app_version,
            os_version, locale, country, provider, device_id IS NULL AS no_device,
            message_uid IS NOT NULL AS in_unit,
            tapline.event_states(type, opens_app, is_test, silent) AS states,
            tapline.event_is_late(received_at, event_time) AS late
        FROM (
            SELECT * FROM tapline.event WHERE segment = first_segment AND ctid >= first_row
            UNION ALL SELECT * FROM tapline.event WHERE segment > first_segment) e
        WHERE batch > done.batch AND batch <= upto
    ), delta AS (
        SELECT unit, min(app COLLATE "C") AS app,
            min(event_time) AS first_at, min(event_time) FILTER (WHERE type = 1) AS sent_at,
            bit_or(states) AS states, count(*) FILTER (WHERE states & (1 << 20) <> 0) AS clicks,
            count(*) FILTER (WHERE late) AS late,
            min(campaign_id COLLATE "C") AS campaign_id, min(platform COLLATE "C") AS platform,
            min(app_version COLLATE "C") AS app_version, min(os_version COLLATE "C") AS os_version,
            min(locale COLLATE "C") AS locale, min(country COLLATE "C") AS country,
            min(provider COLLATE "C") AS provider,
            bool_or(no_device)
                OR coalesce(min(campaign_id COLLATE "C") <> max(campaign_id COLLATE "C"), false)
                OR coalesce(min(platform COLLATE "C") <> max(platform COLLATE "C"), false)
                OR coalesce(min(app_version COLLATE "C") <> max(app_version COLLATE "C"), false)
                OR coalesce(min(os_version COLLATE "C") <> max(os_version COLLATE "C"), false)
                OR coalesce(min(locale COLLATE "C") <> max(locale COLLATE "C"), false)
                OR coalesce(min(country COLLATE "C") <> max(country COLLATE "C"), false)
                OR coalesce(min(provider COLLATE "C") <> max(provider COLLATE "C"), false)
                AS special
        FROM chunk WHERE in_unit GROUP BY unit
    ), placed AS MATERIALIZED (
        -- In the order of the index, which makes looking up and inserting twice as fast. Only one
        -- fold runs at a time, so what is not there now is not there when it is inserted.
        SELECT d.*, (SELECT u.ctid FROM tapline.unit u WHERE u.unit = d.unit) AS place
        FROM (SELECT * FROM delta ORDER BY unit) d
    ), changed AS (
        UPDATE tapline.unit u SET
            first_at = least(u.first_at, d.first_at),
            sent_at = least(u.sent_at, d.sent_at),
            states = u.states | d.states,
            clicks = u.clicks + d.clicks,
            late = u.late + d.late,
            campaign_id = coalesce(u.campaign_id, d.campaign_id),
            platform = coalesce(u.platform, d.platform),
            app_version = coalesce(u.app_version, d.app_version),
            os_version = coalesce(u.os_version, d.os_version),
            locale = coalesce(u.locale, d.locale),
            country = coalesce(u.country, d.country),
            provider = coalesce(u.provider, d.provider),
            special = u.special OR d.special
                OR coalesce(u.campaign_id <> d.campaign_id, false)
                OR coalesce(u.platform <> d.platform, false)
                OR coalesce(u.app_version <> d.app_version, false)
                OR coalesce(u.os_version <> d.os_version, false)
                OR coalesce(u.locale <> d.locale, false)
                OR coalesce(u.country <> d.country, false)
                OR coalesce(u.provider <> d.provider, false)
        FROM placed d WHERE d.place IS NOT NULL AND u.ctid = d.place
        RETURNING u.unit, u.states, u.campaign_id
    ), added AS (
        INSERT INTO tapline.unit (unit, app, first_at, sent_at, states, clicks, late,
            campaign_id, platform, app_version, os_version, locale, country, provider, special)
        SELECT unit, app, first_at, sent_at, states, clicks, late,
            campaign_id, platform, app_version, os_version, locale, country, provider, special
        FROM placed WHERE place IS NULL
        RETURNING unit, states, campaign_id
    ), merged AS (
        SELECT * FROM changed UNION ALL SELECT * FROM added
    ), linked AS (
        INSERT INTO tapline.inbox_link (inbox_unit, unit)
        SELECT DISTINCT inbox_unit, unit FROM chunk
        WHERE in_unit AND inbox_unit IS NOT NULL
        ON CONFLICT DO NOTHING
        RETURNING inbox_unit
    ), sending AS (
        INSERT INTO tapline.sending_app SELECT DISTINCT app FROM chunk WHERE type = 1
        ON CONFLICT DO NOTHING
    )
    SELECT (SELECT count(*) FROM chunk),
        array_agg(unit) FILTER (WHERE campaign_id IS NULL),
        array_agg(unit) FILTER (WHERE campaign_id IS NOT NULL AND states & (1 << 1) <> 0),
        array_agg(unit) FILTER (WHERE states & (15 << 10) <> 0),
        (SELECT array_agg(DISTINCT inbox_unit) FROM linked)
    INTO folded, orphans, senders, in_inbox, naming FROM merged;

    -- A unit without a campaign takes that of a sent on another device of its message.
    UPDATE tapline.unit u SET special = true
    FROM unnest(orphans) o
    WHERE u.unit = o AND NOT u.special AND EXISTS (
        SELECT FROM tapline.unit s
        WHERE s.unit BETWEEN tapline.message_first(o) AND tapline.message_last(o)
            AND s.campaign_id IS NOT NULL AND s.states & (1 << 1) <> 0);
    IF EXISTS (SELECT FROM tapline.unit WHERE campaign_id IS NULL AND NOT special) THEN
        UPDATE tapline.unit u SET special = true
        FROM unnest(senders) s
        WHERE u.unit BETWEEN tapline.message_first(s) AND tapline.message_last(s)
            AND u.campaign_id IS NULL AND NOT u.special;
    END IF;
    -- Inbox events may belong to the unit that names theirs: where an inbox unit has events of its
    -- own, or several units name one, who belongs where is computed from the events.
    UPDATE tapline.unit u SET special = true
    FROM (
        SELECT n.unit
        FROM unnest(in_inbox) x JOIN tapline.inbox_link l ON l.inbox_unit = x AND l.unit <> x,
            LATERAL (VALUES (x), (l.unit)) n(unit)
        UNION
        SELECT n.unit
        FROM unnest(naming) x JOIN tapline.inbox_link l ON l.inbox_unit = x,
            LATERAL (VALUES (x), (l.unit)) n(unit)
        WHERE (SELECT count(*) FROM tapline.inbox_link c WHERE c.inbox_unit = x) > 1
            OR l.unit <> x AND EXISTS (
                SELECT FROM tapline.unit i WHERE i.unit = x AND i.states & (15 << 10) <> 0)
    ) s
    WHERE u.unit = s.unit AND NOT u.special;

    UPDATE tapline.fold SET batch = upto;
    RETURN folded;
END
$$;
COMMENT ON FUNCTION tapline.fold_units IS
    'Folds the next batches, about events_max events, into units; returns how many events it took';

CREATE FUNCTION tapline.affected_units(units_max int) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    done tapline.fold;
    first_segment int;
    first_row tid;
    tail_units uuid[];
    tail_senders uuid[];
    link_from uuid[];
    link_to uuid[];
    reached uuid[];
    frontier uuid[];
BEGIN
    SELECT * INTO STRICT done FROM tapline.fold;
    IF (SELECT coalesce(sum(rows), 0) FROM tapline.batch WHERE batch > done.batch) > units_max
        OR (SELECT count(*) FROM (SELECT FROM tapline.unit WHERE special LIMIT units_max) s)
            >= units_max
    THEN
        RETURN NULL;
    END IF;
    SELECT segment, format('(%s,0)', min(first_block))::tid INTO first_segment, first_row
    FROM tapline.batch WHERE batch > done.batch GROUP BY segment ORDER BY segment LIMIT 1;
    SELECT array_agg(DISTINCT unit),
        array_agg(DISTINCT unit) FILTER (WHERE type = 1 AND campaign_id IS NOT NULL),
        array_agg(inbox_unit) FILTER (WHERE inbox_unit IS NOT NULL),
        array_agg(unit) FILTER (WHERE inbox_unit IS NOT NULL)
    INTO tail_units, tail_senders, link_from, link_to
    FROM (
        SELECT * FROM tapline.event WHERE segment = first_segment AND ctid >= first_row
        UNION ALL SELECT * FROM tapline.event WHERE segment > first_segment) e
    WHERE batch > done.batch AND message_uid IS NOT NULL;

    SELECT array_agg(unit) INTO frontier FROM (
        SELECT unit FROM tapline.unit WHERE special
        UNION SELECT unnest(tail_units)
        UNION SELECT u.unit FROM unnest(tail_senders) s JOIN tapline.unit u
            ON u.unit BETWEEN tapline.message_first(s) AND tapline.message_last(s)
            AND u.campaign_id IS NULL
    ) seed;
    reached := coalesce(frontier, '{}');
    WHILE cardinality(frontier) > 0 LOOP
        IF cardinality(reached) > units_max THEN
            RETURN NULL;
        END IF;
        SELECT array_agg(unit) INTO frontier FROM (
            (SELECT l.unit FROM unnest(frontier) f JOIN tapline.inbox_link l ON l.inbox_unit = f
            UNION SELECT l.inbox_unit FROM unnest(frontier) f JOIN tapline.inbox_link l ON l.unit = f
            UNION SELECT l.unit FROM unnest(frontier) f
                JOIN unnest(link_from, link_to) l(inbox_unit, unit) ON l.inbox_unit = f
            UNION SELECT l.inbox_unit FROM unnest(frontier) f
                JOIN unnest(link_from, link_to) l(inbox_unit, unit) ON l.unit = f
            -- Where a message has events without a device, each of its units counts.
            UNION SELECT s.unit FROM unnest(frontier) f JOIN tapline.unit s
                ON s.unit BETWEEN tapline.message_first(f) AND tapline.message_last(f)
                WHERE f = tapline.message_first(f)
            UNION SELECT l.inbox_unit FROM unnest(frontier) f JOIN tapline.inbox_link l
                ON l.inbox_unit BETWEEN tapline.message_first(f) AND tapline.message_last(f)
                WHERE f = tapline.message_first(f)
            -- Where a unit may name no campaign, the sent events of its message count.
            UNION SELECT s.unit FROM unnest(frontier) f
                LEFT JOIN tapline.unit u ON u.unit = f
                JOIN tapline.unit s
                    ON s.unit BETWEEN tapline.message_first(f) AND tapline.message_last(f)
                WHERE (u.unit IS NULL OR u.campaign_id IS NULL OR u.states & (15 << 10) <> 0)
                    AND s.campaign_id IS NOT NULL AND s.states & (1 << 1) <> 0)
            EXCEPT SELECT unnest(reached)
        ) next;
        reached := reached || coalesce(frontier, '{}');
    END LOOP;
    RETURN reached;
END
$$;
COMMENT ON FUNCTION tapline.affected_units IS
    'The units that a report must compute from their events: special ones, those touched since the last fold, and whatever the result of these hangs on; null when they are more than units_max';

-- The Wilson score interval at 95 % of k of n; null where there is no n.
CREATE FUNCTION tapline.wilson_low(k bigint, n bigint) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN n > 0 AND k = 0 THEN 0 WHEN n > 0 AND k > 0 THEN greatest(0,
        (k + z * z / 2 - z * sqrt(k::float8 * (n - k) / n + z * z / 4)) / (n + z * z)) END
    FROM (VALUES (1.959963984540054::float8)) c(z)
$$;
COMMENT ON FUNCTION tapline.wilson_low IS 'lower bound of the Wilson 95 % interval of k of n';

CREATE FUNCTION tapline.wilson_high(k bigint, n bigint) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN n > 0 AND k = n THEN 1 WHEN n > 0 AND k < n THEN least(1,
        (k + z * z / 2 + z * sqrt(k::float8 * (n - k) / n + z * z / 4)) / (n + z * z)) END
    FROM (VALUES (1.959963984540054::float8)) c(z)
$$;
COMMENT ON FUNCTION tapline.wilson_high IS 'upper bound of the Wilson 95 % interval of k of n';
