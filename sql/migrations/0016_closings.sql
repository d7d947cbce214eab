-- Daemons keep the identities of closed segments in files beside their spool. What such a file says holds for
-- one closing of one segment: after a restore a segment may be closed again, with other events.
ALTER TABLE tapline.segment ADD COLUMN closing uuid;
COMMENT ON COLUMN tapline.segment.closing IS
    'Made at random when the segment was closed: the files of identities of this closing are true. Null for none';
