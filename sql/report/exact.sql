-- The definition of a unit, as CTE `exact`: one row a unit of the events in `source`.
-- Rules: docs/reports.md "Who belongs where". Placeholder `sibling` is the sent events, with their
-- message, that name a campaign, of messages in `orphan`, which `orphan` narrows; `journey` adds what devices did around
-- their messages, or nothing. $2 and $3 are the period (half-open), which `any time` lets pass, $5 the
-- campaign.

-- Most events are of the unit they name. Those without a device belong to the only device that the
-- message's other events name.
loose AS (
    SELECT DISTINCT tapline.unit_message(unit) AS message FROM source WHERE no_device
), owner AS (
    SELECT l.message, count(DISTINCT s.unit) AS devices, min(s.unit::text)::uuid AS unit
    FROM source s JOIN loose l ON l.message = tapline.unit_message(s.unit)
    WHERE NOT s.no_device GROUP BY l.message
), unsure AS (
    -- With several devices nobody knows whose sent (or failed) it was.
    SELECT o.message, bool_or(s.type = 2) AS failed_unknown
    FROM source s JOIN owner o ON o.message = tapline.unit_message(s.unit)
    WHERE s.no_device AND s.type IN (1, 2) AND o.devices > 1 GROUP BY o.message
), placed AS (
    SELECT s.*,
        CASE WHEN o.devices = 1 THEN o.unit ELSE s.unit END AS own,
        CASE WHEN o.devices = 1 THEN tapline.unit_of(s.inbox_unit, o.unit) ELSE s.inbox_unit END
            AS inbox
    FROM source s
        LEFT JOIN owner o ON s.no_device AND o.message = tapline.unit_message(s.unit)
    WHERE (s.no_device OR s.in_inbox)
        AND (o.devices IS NULL OR o.devices = 1 OR s.type NOT IN (1, 2))
),
-- An inbox event joins the unit of its app and device that names one of its two ids, if any does:
-- the one of the earliest event that does.
link AS (
    SELECT DISTINCT ON (inbox) inbox, unit, event_time, key
    FROM (
        SELECT inbox_unit AS inbox, unit, event_time, key FROM source
        WHERE inbox_unit IS NOT NULL AND NOT no_device AND NOT in_inbox
        UNION ALL
        SELECT inbox, own, event_time, key FROM placed WHERE inbox IS NOT NULL AND NOT in_inbox
    ) l
    ORDER BY inbox, event_time, key
), joined AS NOT MATERIALIZED (
    SELECT unit AS target, key, event_time, type, app, campaign_id, first, second, states, late,
        piece_one, piece_two, in_piece, device_time, category_id, action_id
    FROM source WHERE NOT no_device AND NOT in_inbox
    UNION ALL
    SELECT CASE WHEN b.unit IS NULL OR (a.event_time, a.key) <= (b.event_time, b.key)
            THEN coalesce(a.unit, p.own) ELSE b.unit END,
        p.key, p.event_time, p.type, p.app, p.campaign_id, p.first, p.second, p.states, p.late,
        p.piece_one, p.piece_two, p.in_piece, p.device_time, p.category_id, p.action_id
    FROM placed p
        LEFT JOIN link a ON p.in_inbox AND a.inbox = p.own
        LEFT JOIN link b ON p.in_inbox AND b.inbox = p.inbox
), folded AS (
    SELECT target AS unit, app, bit_or(states) AS states,
        min(event_time) AS seen_at, min(event_time) FILTER (WHERE type = 1) AS sent_at,
        min(event_time) FILTER (WHERE states & (15 << 3) <> 0) AS observed_at,
        count(*) FILTER (WHERE states & (1 << 20) <> 0) AS clicks,
        count(*) FILTER (WHERE late) AS late,
        min(campaign_id COLLATE "C") AS campaign_id, max(campaign_id COLLATE "C") AS campaign_max,
        min(first COLLATE "C") AS first, max(first COLLATE "C") AS first_max,
        min(second COLLATE "C") AS second, max(second COLLATE "C") AS second_max
    FROM joined GROUP BY target, app
),
-- Where the events of a unit disagree, the earliest that says anything is right; of campaigns, the
-- earliest sent before all others. Where none names a campaign, a sent of the message may.
campaign AS (
    SELECT DISTINCT ON (j.target) j.target AS unit, j.campaign_id
    FROM joined j JOIN folded f ON f.unit = j.target
    WHERE f.campaign_id <> f.campaign_max AND j.campaign_id IS NOT NULL
    ORDER BY j.target, j.type <> 1, j.event_time, j.key
), first AS (
    SELECT DISTINCT ON (j.target) j.target AS unit, j.first
    FROM joined j JOIN folded f ON f.unit = j.target
    WHERE f.first <> f.first_max AND j.first IS NOT NULL
    ORDER BY j.target, j.event_time, j.key
), second AS (
    SELECT DISTINCT ON (j.target) j.target AS unit, j.second
    FROM joined j JOIN folded f ON f.unit = j.target
    WHERE f.second <> f.second_max AND j.second IS NOT NULL
    ORDER BY j.target, j.event_time, j.key
), orphan AS (
    SELECT DISTINCT tapline.unit_message(unit) AS message FROM folded WHERE campaign_id IS NULL<orphan>
), message_campaign AS (
    SELECT DISTINCT ON (message) message, campaign_id
    FROM (
<sibling>
    ) s
    ORDER BY message, event_time, key
), whole AS (
    SELECT f.unit, f.app, coalesce(c.campaign_id, f.campaign_id, m.campaign_id) AS campaign_id,
        coalesce(d1.first, f.first) AS first, coalesce(d2.second, f.second) AS second,
        coalesce(f.sent_at, f.seen_at) AS first_at, f.sent_at, f.observed_at, f.states,
        f.states & (1 << 21) <> 0 OR tapline.unit_device(f.unit) IN (
            SELECT tapline.hash64(app, device_id) FROM tapline.test_device) AS is_test,
        c.unit IS NOT NULL AS campaign_mismatch,
        u.message IS NOT NULL AS sent_unknown,
        coalesce(u.failed_unknown, false) AS failed_unknown, f.clicks, f.late
    FROM folded f
        LEFT JOIN campaign c ON f.campaign_id <> f.campaign_max AND c.unit = f.unit
        LEFT JOIN first d1 ON f.first <> f.first_max AND d1.unit = f.unit
        LEFT JOIN second d2 ON f.second <> f.second_max AND d2.unit = f.unit
        LEFT JOIN message_campaign m
            ON f.campaign_id IS NULL AND m.message = tapline.unit_message(f.unit)
        LEFT JOIN unsure u ON u.message = tapline.unit_message(f.unit)
),
<journey>exact AS (
    SELECT w.unit, w.app, w.campaign_id, w.first, w.second, w.first_at,
        w.states<journey states> AS states, w.is_test, w.campaign_mismatch, w.sent_unknown,
        w.failed_unknown, 1::bigint AS n, w.clicks, w.late
    FROM whole w<journey join>
    WHERE (<any time> OR ($2::timestamptz IS NULL OR w.first_at >= $2::timestamptz)
            AND ($3::timestamptz IS NULL OR w.first_at < $3::timestamptz))
        AND ($5::text IS NULL OR coalesce(w.campaign_id, '(unattributed)') = $5)
)
