-- The sent events that name a campaign, of messages in `orphan`, where `source` has only the events
-- of special units.
SELECT s.message, s.campaign_id, s.event_time, s.key
FROM tapline.sent_campaigns((SELECT array_agg(message) FROM orphan)) s
WHERE s.batch <= $1
UNION ALL
SELECT o.message, e.campaign_id, e.event_time, e.key
FROM special e JOIN orphan o ON o.message = tapline.unit_message(e.unit)
WHERE e.batch <= $1 AND e.type = 1 AND e.campaign_id IS NOT NULL
