-- Few units are special, and one is enough for a report to call these: it need not do the rest, which may be a
-- scan of a million cells, with one process for that. They read, so the process that leads may call them.
ALTER FUNCTION tapline.special_events PARALLEL RESTRICTED;
ALTER FUNCTION tapline.sent_campaigns PARALLEL RESTRICTED;
-- Loaders fill it in where they know it; what they know includes events of earlier segments.
COMMENT ON COLUMN tapline.special_unit.campaigns IS
    'among these are the campaigns that events of the unit in the segment name; null: not known';
