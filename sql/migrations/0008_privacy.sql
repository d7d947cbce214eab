-- Events whose content is removed, by `tapline erase` and `tapline retention`: docs/storage.md
-- "Anonymous events".

CREATE FUNCTION tapline.subject(kind text, id text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(kind || ':' || id, 'UTF8'))
$$;
COMMENT ON FUNCTION tapline.subject IS
    'what is kept of the id of a device or person that was erased; kind is device or person';

CREATE TABLE tapline.erasure (
    subject bytea NOT NULL,
    app text NOT NULL,
    requested_at timestamptz NOT NULL,
    PRIMARY KEY (subject, app)
);
COMMENT ON TABLE tapline.erasure IS
    'Devices and persons that were erased: what was received up to requested_at is made anonymous whenever it is loaded';
COMMENT ON COLUMN tapline.erasure.app IS 'empty for all apps';

-- In the row that every load transaction locks, so that none misses it.
ALTER TABLE tapline.turn ADD erased_until timestamptz;
COMMENT ON COLUMN tapline.turn.erased_until IS 'the newest tapline.erasure.requested_at';

ALTER TABLE tapline.segment
    ADD received_first timestamptz, ADD received_last timestamptz,
    ADD bare_before timestamptz, ADD is_compact boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN tapline.segment.received_first IS
    'of a closed segment, once retention has looked: when its first event was received';
COMMENT ON COLUMN tapline.segment.received_last IS 'see received_first: the last event';
COMMENT ON COLUMN tapline.segment.bare_before IS
    'of a closed segment: events received before are anonymous, by retention';
COMMENT ON COLUMN tapline.segment.is_compact IS
    'all of it is anonymous, and the space of what was removed is given back';
COMMENT ON COLUMN tapline.spool.dead_lettered IS
    'events of this spool that PostgreSQL refused; in the row of id 0, which is of replays, less the dead letters that got another verdict'
