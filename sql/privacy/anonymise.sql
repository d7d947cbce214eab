-- What is left of events whose content is removed: what identity, dedupe, units, cells and reports are
-- made of. It is an update, not a delete, so that reports under way and the index go on.
-- Where a null has a meaning, a text becomes empty: no device, in no message.
-- Until a segment is sealed it is noted that old versions of rows are in its file.
-- Placeholders: `segment`, and `which`, a condition on events `e`.
WITH emptied AS (
    UPDATE tapline.event_<segment> e SET
        message_uid = CASE WHEN e.message_uid IS NOT NULL THEN '' END,
        device_id = CASE WHEN e.device_id IS NOT NULL THEN '' END,
        event_uid = NULL, inbox_message_uid = NULL, collapse_key = NULL, person_id = NULL,
        sdk_version = NULL, occurred_raw = NULL, sent_at = NULL,
        properties = tapline.group_properties(e.properties)
    WHERE (e.message_uid <> '' OR e.device_id <> '' OR num_nonnulls(
            e.event_uid, e.inbox_message_uid, e.collapse_key, e.person_id,
            e.sdk_version, e.occurred_raw, e.sent_at) > 0
            OR e.properties <> coalesce(tapline.group_properties(e.properties), ''))
        AND (<which>)
    RETURNING 1
), noted AS (
    UPDATE tapline.segment SET has_old_versions = true
    WHERE segment = <segment> AND state <> 'sealed' AND NOT has_old_versions AND EXISTS (SELECT FROM emptied)
)
SELECT count(*) FROM emptied
