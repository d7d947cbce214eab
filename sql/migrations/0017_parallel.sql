-- Few units are special, and one is enough for a report to call these: it need not do the rest, which may be a
-- scan of a million cells, with one process for that. They read, so the process that leads may call them.
ALTER FUNCTION tapline.special_events PARALLEL RESTRICTED;
ALTER FUNCTION tapline.sent_campaigns PARALLEL RESTRICTED;
