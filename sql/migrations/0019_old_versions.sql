-- Whether a segment has to be vacuumed when it is closed was found by a scan of all of its events, by each daemon. Who
-- makes old versions notes it now; of segments that are not sealed yet it is not known.
ALTER TABLE tapline.segment ADD COLUMN has_old_versions boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN tapline.segment.has_old_versions IS
    'Erase or retention changed events before it was sealed, so that it is vacuumed when it is';
UPDATE tapline.segment SET has_old_versions = true WHERE state <> 'sealed';
