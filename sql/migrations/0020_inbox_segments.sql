-- A segment of which no event names an inbox message got an index of none: to build it took a scan of all events,
-- while no daemon could load. Of segments that were closed before it is not known.
ALTER TABLE tapline.segment ADD COLUMN has_inbox boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN tapline.segment.has_inbox IS
    'Its events may name inbox messages, which its index event_N_inbox_unit finds; without, there is no such index';
-- The first segment of a new database was open when 0019 came, and has no old versions.
UPDATE tapline.segment SET has_old_versions = false
WHERE state = 'open' AND (SELECT segment_rows FROM tapline.turn) = 0;
