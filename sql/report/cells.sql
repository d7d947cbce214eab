-- Counts and rates, from CTEs `unit` (each row stands for `n` units) and `sending` (apps that ever
-- logged a sent): docs/reports.md. A unit of `part` 1 is in rows alone, of 2 in totals alone, of 0 in
-- both: what is by event cuts a unit into pieces, and the totals count it once.
-- $2, $3 period (half-open), $4 app and $5 campaign have been obeyed there; $6 include test units,
-- $7 rows at most.
-- <campaign>, <one> and <two> are the row's keys. CTEs `opening` and `pressed` are of `opening.sql`, or
-- empty.

-- Few units differ in all of these, so everything below works on thousands of rows at most.
alike AS (
    SELECT app, <campaign> AS campaign_id, <one> AS one, <two> AS two,
        states, is_test, campaign_mismatch, sent_unknown, failed_unknown, part,
        sum(n) AS n, sum(clicks) AS clicks, sum(late) AS late
    FROM unit
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    -- Units that have moved on to another cell.
    HAVING sum(n) <> 0
), state AS (
    SELECT a.*, s.app IS NULL OR sent_unknown AS unsent, is_test AND NOT $6::boolean AS excluded,
        states & (1 << 1) <> 0 AS sent,
        states & (1 << 2) <> 0 AS failed,
        states & (15 << 3) <> 0 AS observed,
        states & (1 << 6) <> 0 AS confirmed,
        states & (1 << 20) <> 0 AS click,
        states & (1 << 8) <> 0 AS action,
        states & (1 << 9) <> 0 AS dismissed,
        states & (1 << 12) <> 0 AS inbox,
        states & (1 << 22) = 0 AS loud,
        states & (1 << 23) <> 0 AS influenced,
        states & (1 << 24) <> 0 AS converted,
        states & (1 << 25) <> 0 AS launched_soon,
        states & (1 << 19) <> 0 AS biased
    FROM alike a LEFT JOIN sending s ON s.app = a.app
), sets AS (
    SELECT s.*, d.delivered, e.engaged, a.accepted
    FROM state s,
        LATERAL (SELECT observed OR click OR action OR dismissed OR inbox) d(delivered),
        LATERAL (SELECT click OR action OR inbox OR confirmed) e(engaged),
        LATERAL (SELECT sent AND (NOT failed OR d.delivered)) a(accepted)
), counted AS (
    SELECT app, campaign_id, one, two, false AS is_total,
<sums>
    FROM sets WHERE part <> 2 GROUP BY app, campaign_id, one, two
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, true,
<sums>
    FROM sets WHERE part <> 1
),
<opening>,
known AS (
    -- A sum over nothing is 0, but what depends on an unknown SENT is null; so is SENT itself in
    -- an empty report, unless the app asked for, or any if none is, has logged one. What devices did
    -- around a message is null where nobody looked.
    SELECT c.is_total, coalesce(c.app, $4) AS app, c.campaign_id, c.one, c.two,
        coalesce(test_excluded, 0) AS test_excluded, coalesce(late, 0) AS late,
        coalesce(clicks_total, 0) AS clicks_total,
        CASE WHEN has_sent THEN coalesce(sent, 0) END AS sent,
        CASE WHEN NOT failed_unknown THEN coalesce(failed, 0) END AS failed,
        CASE WHEN has_sent AND NOT failed_unknown THEN coalesce(accepted, 0) END AS accepted,
        coalesce(observed, 0) AS observed, coalesce(delivered, 0) AS delivered,
        coalesce(implied, 0) AS implied, coalesce(clicked, 0) AS clicked,
        coalesce(actions, 0) AS actions, coalesce(dismissed, 0) AS dismissed,
        coalesce(inbox_opened, 0) AS inbox_opened, coalesce(engaged, 0) AS engaged,
        CASE WHEN has_journey THEN coalesce(influenced, 0) END AS influenced,
        CASE WHEN has_journey THEN coalesce(converted, 0) END AS converted,
        CASE WHEN has_journey THEN coalesce(o.reversed, 0) END AS clicks_before_receipts,
        o.p50, o.p90, o.p99, o.opened,
        CASE WHEN has_sent THEN coalesce(clicks_without_send, 0) END AS clicks_without_send,
        CASE WHEN NOT failed_unknown THEN coalesce(failed_but_clicked, 0) END
            AS failed_but_clicked,
        CASE WHEN has_sent THEN coalesce(delivered_of_sent, 0) END AS delivered_of_sent,
        CASE WHEN has_sent THEN coalesce(loud_sent, 0) END AS loud_sent,
        CASE WHEN has_sent AND NOT failed_unknown THEN coalesce(loud_accepted, 0) END
            AS loud_accepted,
        coalesce(loud_delivered, 0) AS loud_delivered, coalesce(loud_click, 0) AS loud_click,
        CASE WHEN has_sent THEN coalesce(loud_click_of_sent, 0) END AS loud_click_of_sent,
        CASE WHEN has_sent AND NOT failed_unknown THEN coalesce(loud_click_of_accepted, 0) END
            AS loud_click_of_accepted,
        coalesce(loud_engaged, 0) AS loud_engaged, coalesce(loud_dismissed, 0) AS loud_dismissed,
        CASE WHEN has_journey THEN coalesce(loud_influenced, 0) END AS loud_influenced,
        CASE WHEN has_journey THEN coalesce(loud_converted, 0) END AS loud_converted,
        CASE WHEN has_journey THEN coalesce(loud_actions, 0) END AS loud_actions, b.buttons,
        array_remove(ARRAY[
            CASE WHEN campaign_mismatch THEN 'campaign_mismatch' END,
            CASE WHEN loud_click = loud_delivered AND loud_delivered > 30 THEN 'ctr_100_percent' END,
            CASE WHEN sent_without_device THEN 'sent_without_device' END,
            CASE WHEN biased THEN 'receipt_biased' END,
            CASE WHEN has_journey AND o.reversed > 0 THEN 'clicks_before_receipts' END,
            -- A few launches right after a message are chance.
            CASE WHEN has_journey AND loud_delivered > 30 AND coalesce(loud_click, 0) = 0
                AND launched_soon * 50 >= loud_delivered THEN 'taps_not_forwarded' END], NULL) AS flags
    FROM counted c
        LEFT JOIN opening o ON o.is_total = c.is_total
            AND o.key = ARRAY[c.app, c.campaign_id, c.one, c.two]
        LEFT JOIN pressed b ON b.is_total = c.is_total
            AND b.key = ARRAY[c.app, c.campaign_id, c.one, c.two],
        LATERAL (SELECT NOT coalesce(unsent, NOT EXISTS (
            SELECT FROM sending WHERE $4::text IS NULL OR app = $4))) u(has_sent),
        LATERAL (SELECT <has journey>) j(has_journey)
), rated AS MATERIALIZED (
    -- Materialized, so that what uses a number many times does not compute it as often.
    SELECT k.*,
        delivered_of_sent AS delivery_rate_numerator, sent AS delivery_rate_denominator,
        loud_click AS ctr_delivered_numerator, loud_delivered AS ctr_delivered_denominator,
        loud_click_of_sent AS ctr_sent_numerator, loud_sent AS ctr_sent_denominator,
        loud_click_of_accepted AS ctr_accepted_numerator,
        loud_accepted AS ctr_accepted_denominator,
        loud_engaged AS engagement_rate_numerator, loud_delivered AS engagement_rate_denominator,
        loud_dismissed AS dismiss_rate_numerator, loud_delivered AS dismiss_rate_denominator,
        loud_influenced AS influenced_rate_numerator,
        CASE WHEN loud_influenced IS NOT NULL THEN loud_delivered END AS influenced_rate_denominator,
        loud_converted AS conversion_rate_numerator,
        CASE WHEN loud_converted IS NOT NULL THEN loud_delivered END AS conversion_rate_denominator
    FROM known k
), result AS (
    SELECT r.*,
        delivery_rate_numerator::float8 / nullif(delivery_rate_denominator, 0) AS delivery_rate,
        ctr_delivered_numerator::float8 / nullif(ctr_delivered_denominator, 0) AS ctr_delivered,
        ctr_sent_numerator::float8 / nullif(ctr_sent_denominator, 0) AS ctr_sent,
        ctr_accepted_numerator::float8 / nullif(ctr_accepted_denominator, 0) AS ctr_accepted,
        engagement_rate_numerator::float8 / nullif(engagement_rate_denominator, 0)
            AS engagement_rate,
        dismiss_rate_numerator::float8 / nullif(dismiss_rate_denominator, 0) AS dismiss_rate,
        influenced_rate_numerator::float8 / nullif(influenced_rate_denominator, 0)
            AS influenced_rate,
        conversion_rate_numerator::float8 / nullif(conversion_rate_denominator, 0)
            AS conversion_rate,
        array_to_string(flags<version flags>, ' ') AS flag_names
    FROM rated r
)
