-- Views for BI tools, and a role that may read them: docs/reports.md, "From SQL". Names and columns stay;
-- the views are made anew with the function that they read.
CREATE SCHEMA IF NOT EXISTS reporting;

CREATE VIEW reporting.campaign AS
SELECT app, campaign_id, sent, failed, accepted, observed, delivered, implied, clicked, clicks_total,
    actions, dismissed, inbox_opened, engaged, test_excluded, late, clicks_without_send,
    failed_but_clicked, delivery_rate, ctr_delivered, ctr_delivered_low, ctr_delivered_high, ctr_sent,
    ctr_accepted, engagement_rate, dismiss_rate, string_to_array(flags, ' ') AS flags
FROM tapline.report('campaign') WHERE NOT is_total;
COMMENT ON VIEW reporting.campaign IS
    'The campaign report of now, over all time: the same numbers as "tapline report"';

CREATE VIEW reporting.campaign_day AS
SELECT app, campaign_id, dimension::date AS day, sent, failed, accepted, observed, delivered, implied,
    clicked, clicks_total, actions, dismissed, inbox_opened, engaged, test_excluded, late,
    clicks_without_send, failed_but_clicked, delivery_rate, ctr_delivered, ctr_delivered_low,
    ctr_delivered_high, ctr_sent, ctr_accepted, engagement_rate, dismiss_rate,
    string_to_array(flags, ' ') AS flags
FROM tapline.report('campaign,day') WHERE NOT is_total;
COMMENT ON VIEW reporting.campaign_day IS
    'reporting.campaign by the day, in UTC, on which the messages were first seen';

CREATE VIEW reporting.campaign_names AS
SELECT app, campaign_id, name AS campaign_name, variant AS campaign_variant,
    audience AS campaign_audience, provider AS campaign_provider, sent_at AS campaign_sent_at
FROM tapline.campaign;
COMMENT ON VIEW reporting.campaign_names IS
    'What tapline campaign import said of campaigns; not every campaign of events has a row';

CREATE VIEW reporting.events AS
SELECT e.app, t.name AS type, e.type_raw, e.event_time, e.received_at, b.stored_at, e.occurred_at,
    e.sent_at, (ARRAY['device', 'corrected', 'server'])[e.time_rule + 1] AS time_rule,
    e.message_uid, e.device_id, e.event_uid, e.campaign_id, e.action_id, e.category_id,
    e.inbox_message_uid, e.collapse_key, e.platform, e.app_version, e.os_version, e.sdk_version,
    e.locale, e.country, e.provider, e.person_id, e.opens_app, e.is_test, e.silent,
    e.properties::jsonb AS properties, e.key AS identity, e.batch
FROM tapline.event e
    JOIN tapline.event_type t ON t.code = e.type
    LEFT JOIN tapline.batch b ON b.batch = e.batch;
COMMENT ON VIEW reporting.events IS 'Every stored event, once; properties as jsonb';

-- Not every owner of a database may make roles: then its administrator does.
DO $$
BEGIN
    IF to_regrole('tapline_reporting') IS NULL THEN
        CREATE ROLE tapline_reporting NOLOGIN;
    END IF;
EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
    NULL;
END
$$;
DO $$
BEGIN
    IF to_regrole('tapline_reporting') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA reporting, tapline TO tapline_reporting;
        -- What the views read, and the partitions to come; no keys, and no bodies that were refused.
        GRANT SELECT ON ALL TABLES IN SCHEMA reporting, tapline TO tapline_reporting;
        REVOKE ALL ON tapline.api_key, tapline.token_secret, tapline.dead_letter, tapline.conflict
            FROM tapline_reporting;
        ALTER DEFAULT PRIVILEGES IN SCHEMA tapline GRANT SELECT ON TABLES TO tapline_reporting;
    END IF;
END
$$
