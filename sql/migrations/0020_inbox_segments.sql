-- Most segments have no event that names an inbox message: to build an index of none took a scan of all of their
-- events, while no daemon could load. Of those that were closed before it is not known.
ALTER TABLE tapline.segment ADD COLUMN has_inbox boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN tapline.segment.has_inbox IS
    'Its events may name inbox messages, which its index event_N_inbox_unit finds; without, there is no such index';
-- The first segment of a new database was open when 0019 came, and has no old versions.
UPDATE tapline.segment s SET has_old_versions = false
WHERE state = 'open' AND NOT EXISTS (SELECT FROM tapline.event e WHERE e.segment = s.segment);
