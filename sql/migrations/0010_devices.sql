-- Devices as their SDKs register them, and the categories of interactive notifications: docs/devices.md.

CREATE TABLE tapline.device_state (
    app text NOT NULL,
    device_id text NOT NULL,
    at timestamptz NOT NULL,
    key uuid NOT NULL,
    registered boolean,
    platform text,
    app_version text,
    os_version text,
    sdk_version text,
    locale text,
    country text,
    provider text,
    person_id text,
    time_zone text,
    push_group text,
    topics text[],
    is_test boolean,
    PRIMARY KEY (app, device_id, at, key)
);
COMMENT ON TABLE tapline.device_state IS
    'What each device_register, device_update and device_unregister event said of its device, and when; null where it said nothing. Written by the load transaction that stores the event';
COMMENT ON COLUMN tapline.device_state.at IS 'event_time of the event';
COMMENT ON COLUMN tapline.device_state.key IS 'identity of the event; orders events of one time';
COMMENT ON COLUMN tapline.device_state.registered IS
    'true of device_register, false of device_unregister, null of device_update';

ALTER TABLE tapline.event ADD filled smallint;
COMMENT ON COLUMN tapline.event.filled IS
    'which dimensions the event does not say and has of its device: 1 platform, 2 app_version, 4 os_version, 8 locale, 16 country, 32 provider; null for none';

CREATE FUNCTION tapline.device_at(app text, device_id text, at timestamptz)
RETURNS TABLE (registered boolean, platform text, app_version text, os_version text, sdk_version text,
    locale text, country text, provider text, person_id text, time_zone text, push_group text,
    topics text[])
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (array_agg(s.registered ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.registered IS NOT NULL))[1],
        (array_agg(s.platform ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.platform IS NOT NULL))[1],
        (array_agg(s.app_version ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.app_version IS NOT NULL))[1],
        (array_agg(s.os_version ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.os_version IS NOT NULL))[1],
        (array_agg(s.sdk_version ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.sdk_version IS NOT NULL))[1],
        (array_agg(s.locale ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.locale IS NOT NULL))[1],
        (array_agg(s.country ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.country IS NOT NULL))[1],
        (array_agg(s.provider ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.provider IS NOT NULL))[1],
        (array_agg(s.person_id ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.person_id IS NOT NULL))[1],
        (array_agg(s.time_zone ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.time_zone IS NOT NULL))[1],
        (array_agg(s.push_group ORDER BY s.at DESC, s.key DESC) FILTER (WHERE s.push_group IS NOT NULL))[1],
        -- Arrays of different lengths make no array.
        (SELECT t.topics FROM tapline.device_state t
            WHERE t.app = device_at.app AND t.device_id = device_at.device_id
                AND t.at <= device_at.at AND t.topics IS NOT NULL
            ORDER BY t.at DESC, t.key DESC LIMIT 1)
    FROM tapline.device_state s
    WHERE s.app = device_at.app AND s.device_id = device_at.device_id AND s.at <= device_at.at
$$;
COMMENT ON FUNCTION tapline.device_at IS
    'what was known of a device at a time: of each column the newest value said by then';

CREATE VIEW tapline.device AS
    SELECT d.app, d.device_id, d.first_at, d.changed_at, coalesce(s.registered, true) AS registered,
        s.platform, s.app_version, s.os_version, s.sdk_version, s.locale, s.country, s.provider,
        s.person_id, s.time_zone, s.push_group, s.topics,
        EXISTS (SELECT FROM tapline.test_device t
            WHERE t.app = d.app AND t.device_id = d.device_id) AS is_test
    FROM (
        SELECT app, device_id, min(at) AS first_at, max(at) AS changed_at
        FROM tapline.device_state GROUP BY app, device_id) d,
        LATERAL tapline.device_at(d.app, d.device_id, 'infinity') s;
COMMENT ON VIEW tapline.device IS 'Every device that ever registered, as it is now';

CREATE TABLE tapline.token_secret (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    secret bytea NOT NULL CHECK (octet_length(secret) = 32)
);
COMMENT ON TABLE tapline.token_secret IS
    'Signs the tokens that registration calls issue to devices; another secret ends all of them';
-- Each UUID has 122 bits from the server's strong random source.
INSERT INTO tapline.token_secret (secret)
    SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

CREATE TABLE tapline.category (
    app text NOT NULL,
    category_id text NOT NULL,
    label text,
    PRIMARY KEY (app, category_id)
);
COMMENT ON TABLE tapline.category IS 'Kinds of interactive notifications, from tapline category import';

CREATE TABLE tapline.category_button (
    app text NOT NULL,
    category_id text NOT NULL,
    action_id text NOT NULL,
    place int NOT NULL,
    label text,
    type text,
    opens_app boolean,
    PRIMARY KEY (app, category_id, action_id),
    FOREIGN KEY (app, category_id) REFERENCES tapline.category ON DELETE CASCADE
);
COMMENT ON TABLE tapline.category_button IS 'The buttons of each category, in order of place';
COMMENT ON COLUMN tapline.category_button.opens_app IS
    'whether pressing it opens the app, for action events that do not say; null is not known';

CREATE FUNCTION tapline.button_opens(app text, category_id text, action_id text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT b.opens_app FROM tapline.category_button b
    WHERE b.app = $1 AND b.category_id = $2 AND b.action_id = $3
$$;
COMMENT ON FUNCTION tapline.button_opens IS 'whether a button opens the app; null is not known';

-- In two, so that this one is a part of the statement and the look-up a call for actions alone.
CREATE FUNCTION tapline.opens_app(
    type smallint, opens_app boolean, app text, category_id text, action_id text
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN type = 8 AND opens_app IS NULL
        THEN tapline.button_opens(app, category_id, action_id) ELSE opens_app END
$$;
COMMENT ON FUNCTION tapline.opens_app IS
    'whether an event opened the app: as it says, else as the category table says now'
