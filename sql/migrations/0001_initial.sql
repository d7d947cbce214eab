-- The tables of Tapline. Why they look like this: docs/storage.md.
-- Events are append-only and are the source of truth; units and reports are functions of them.

CREATE TABLE tapline.event_type (
    code smallint PRIMARY KEY,
    name text NOT NULL UNIQUE,
    is_status boolean NOT NULL
);
COMMENT ON TABLE tapline.event_type IS
    'Known words of product types; code 0 is every custom tracking event, whose word is in event.type_raw';
INSERT INTO tapline.event_type (code, name, is_status) VALUES
    (0, 'custom', false), (1, 'sent', true), (2, 'failed', true), (3, 'received', true),
    (4, 'displayed', true), (5, 'consumed', true), (6, 'confirmed', true), (7, 'clicked', true),
    (8, 'action', true), (9, 'dismissed', true), (10, 'inbox_received', true),
    (11, 'inbox_read', true), (12, 'inbox_open', true), (13, 'inbox_deleted', true),
    (14, 'launch', false), (15, 'inbox_fetch', false), (16, 'conversion', false);

-- One row an accepted event. The column order up to properties is the order in which the daemon
-- encodes a row (Event/EventRow.swift); batch and segment are added by the loader.
CREATE TABLE tapline.event (
    key uuid NOT NULL,
    unit uuid NOT NULL,
    event_time timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    type smallint NOT NULL,
    time_rule smallint NOT NULL,
    properties_hash bigint,
    app text NOT NULL,
    campaign_id text,
    message_uid text,
    device_id text,
    event_uid text,
    action_id text,
    category_id text,
    inbox_message_uid text,
    inbox_unit uuid,
    collapse_key text,
    platform text,
    app_version text,
    os_version text,
    sdk_version text,
    locale text,
    country text,
    provider text,
    person_id text,
    occurred_at timestamptz,
    occurred_raw text,
    sent_at timestamptz,
    opens_app boolean,
    is_test boolean,
    silent boolean,
    type_raw text,
    properties text,
    batch bigint NOT NULL,
    segment int NOT NULL
) PARTITION BY LIST (segment);
COMMENT ON TABLE tapline.event IS 'Every stored event, once; partitioned by load segment';
COMMENT ON COLUMN tapline.event.key IS 'identity of the event: SHA-256 cut to 128 bits; dedupe is on it';
COMMENT ON COLUMN tapline.event.unit IS
    'message and device: 64 bits of hash(app, message_uid), 0 without a message, then 64 bits of hash(app, device_id), 0 without a device';
COMMENT ON COLUMN tapline.event.time_rule IS 'what made event_time: 0 device, 1 corrected, 2 server';
COMMENT ON COLUMN tapline.event.properties_hash IS
    'hash of the canonical properties; only with an event_uid, where it tells a conflict from a duplicate';
COMMENT ON COLUMN tapline.event.inbox_unit IS
    'the unit that (app, inbox_message_uid, device) would be: joins an inbox event to its push';
COMMENT ON COLUMN tapline.event.occurred_raw IS
    'occurred_at as the client sent it, where occurred_at alone does not give it back';
COMMENT ON COLUMN tapline.event.type_raw IS 'the type as sent, where it differs from the known word';
COMMENT ON COLUMN tapline.event.properties IS
    'a JSON object checked by the daemon, as text: parsing jsonb at load is the limit of COPY';
COMMENT ON COLUMN tapline.event.batch IS 'the load transaction that stored it; gives stored_at';

-- State of a segment: open while it takes rows, closing until its index stands, then sealed.
CREATE TABLE tapline.segment (
    segment int PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('open', 'closing', 'sealed')),
    opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    rows bigint
);
COMMENT ON TABLE tapline.segment IS 'One partition of event each; only the open one takes rows';

-- The one row every load transaction locks: it puts all of them, of all daemons, into one order.
CREATE TABLE tapline.turn (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    batch bigint NOT NULL,
    stored_at timestamptz NOT NULL,
    segment int NOT NULL REFERENCES tapline.segment,
    segment_rows bigint NOT NULL
) WITH (fillfactor = 10);
COMMENT ON TABLE tapline.turn IS
    'Newest batch and the open segment with its row count; locked FOR UPDATE by each load transaction';

CREATE TABLE tapline.batch (
    batch bigint PRIMARY KEY,
    stored_at timestamptz NOT NULL,
    spool uuid NOT NULL,
    rows int NOT NULL,
    segment int NOT NULL,
    first_block bigint NOT NULL
);
COMMENT ON TABLE tapline.batch IS 'Load transactions in commit order; stored_at rises with batch';
COMMENT ON COLUMN tapline.batch.first_block IS
    'rows of the batch are in this block of its segment or after it: other daemons read them from there';
CREATE INDEX batch_stored_at ON tapline.batch (stored_at);
COMMENT ON INDEX tapline.batch_stored_at IS 'serves --as-of';

-- A spool's checkpoint, fence and verdict counts (law 4). Sums are over all rows.
CREATE TABLE tapline.spool (
    id uuid PRIMARY KEY,
    epoch uuid NOT NULL,
    segment bigint NOT NULL,
    "offset" bigint NOT NULL,
    chain bigint NOT NULL,
    received bigint NOT NULL DEFAULT 0,
    rejected bigint NOT NULL DEFAULT 0,
    stored bigint NOT NULL DEFAULT 0,
    duplicate bigint NOT NULL DEFAULT 0,
    conflict bigint NOT NULL DEFAULT 0,
    dead_lettered bigint NOT NULL DEFAULT 0,
    host text NOT NULL DEFAULT '',
    published_at timestamptz,
    published_received bigint NOT NULL DEFAULT 0,
    published_rejected bigint NOT NULL DEFAULT 0,
    published_spooled bigint NOT NULL DEFAULT 0,
    published_quarantined bigint NOT NULL DEFAULT 0,
    published_oldest timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE tapline.spool IS
    'Per spool: what of it is committed (segment, offset, chained checksum), who may commit (epoch), the verdicts so far, and what it last said is still spooled';

CREATE TABLE tapline.conflict (
    key uuid NOT NULL,
    content uuid NOT NULL,
    app text NOT NULL,
    body text NOT NULL,
    received_at timestamptz NOT NULL,
    stored_at timestamptz NOT NULL,
    times bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (key, content)
);
COMMENT ON TABLE tapline.conflict IS
    'Events whose identity is stored with another content: kept once each, counted every time';

CREATE TABLE tapline.dead_letter (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key uuid NOT NULL,
    app text NOT NULL,
    sqlstate text NOT NULL,
    reason text NOT NULL,
    body text NOT NULL,
    received_at timestamptz NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE tapline.dead_letter IS 'Events that PostgreSQL refused, with its reason; one row a verdict';

CREATE TABLE tapline.api_key (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    app text NOT NULL,
    role text NOT NULL CHECK (role IN ('ingest', 'read', 'admin')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at timestamptz
);
COMMENT ON TABLE tapline.api_key IS 'SHA-256 of each key; the key itself is shown once and kept nowhere';

CREATE TABLE tapline.test_device (
    app text NOT NULL,
    device_id text NOT NULL,
    PRIMARY KEY (app, device_id)
);
COMMENT ON TABLE tapline.test_device IS 'Devices marked as test devices now; decided at report time';

CREATE TABLE tapline.event_1 PARTITION OF tapline.event FOR VALUES IN (1)
    WITH (autovacuum_enabled = false);
INSERT INTO tapline.segment (segment, state) VALUES (1, 'open');
INSERT INTO tapline.turn (batch, stored_at, segment, segment_rows)
    VALUES (0, clock_timestamp(), 1, 0);
