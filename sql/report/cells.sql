-- Counts and rates, from CTEs `alike` (each row stands for `n` units that do not differ in what it says)
-- and `sending` (apps that ever logged a sent): docs/reports.md. Units are of `part` 0, or else each is
-- there twice, for what is by event cuts it: in pieces, of `part` 1, for the rows, and whole, of 2, for
-- the totals, which count it once.
-- $2, $3 period (half-open), $4 app and $5 campaign have been obeyed there; $6 include test units,
-- $7 rows at most.
-- `quarter` is the key of rows by time, of which `labels` makes texts. CTEs `opening` and `pressed` are
-- those of `opening.sql`, or missing.
sets AS (
    -- What a test unit says that is left out counts nowhere. OFFSET 0: to be computed once a row.
    SELECT app, campaign_id, one, two, quarter, part, n, clicks, late, excluded, campaign_mismatch,
        sent_unknown, failed_unknown,
        states & (1 << 1) <> 0 AS sent,
        states & (1 << 2) <> 0 AS failed,
        states & (15 << 3) <> 0 AS observed,
        states & (1 << 20) <> 0 AS click,
        states & (1 << 8) <> 0 AS action,
        states & (1 << 9) <> 0 AS dismissed,
        states & (1 << 12) <> 0 AS inbox,
        states & (1 << 22) = 0 AS loud,
        states & (1 << 23) <> 0 AS influenced,
        states & (1 << 24) <> 0 AS converted,
        states & (1 << 25) <> 0 AS launched_soon,
        states & (1 << 19) <> 0 AS biased,
        states & (<delivered>) <> 0 AS delivered,
        states & ((1 << 20) | (1 << 8) | (1 << 12) | (1 << 6)) <> 0 AS engaged,
        states & (1 << 1) <> 0 AND (states & (1 << 2) = 0 OR states & (<delivered>) <> 0) AS accepted
    FROM (
        SELECT app, campaign_id, one, two, quarter, part, n, clicks, late, excluded,
            campaign_mismatch AND NOT excluded AS campaign_mismatch, sent_unknown,
            failed_unknown AND NOT excluded AS failed_unknown,
            CASE WHEN excluded THEN 0 ELSE states END AS states
        FROM alike, LATERAL (SELECT is_test AND NOT $6::boolean) x(excluded)
        OFFSET 0) a
    OFFSET 0
), summed AS (
    SELECT app, campaign_id, one, two, quarter, part,
<sums>
    FROM sets GROUP BY app, campaign_id, one, two, quarter, part
), keyed AS MATERIALIZED (
    -- Units whose app never logged a sent, or of whom nobody knows, apart by whether they count.
    SELECT s.*,
        CASE WHEN a.app IS NULL THEN units - test_excluded ELSE sent_unknown END AS unsent,
        CASE WHEN a.app IS NULL THEN test_excluded ELSE sent_unknown_excluded END
            AS unsent_excluded
    FROM summed s LEFT JOIN sending a ON a.app = s.app
), counted AS (
    SELECT false AS is_total, app, campaign_id, <one of row> AS one, <two of row> AS two, <names of sums>
    FROM keyed s<labels>
    -- Units that have moved on to another cell leave a sum of 0.
    WHERE part <> 2 AND units <> 0
    UNION ALL
    SELECT true, NULL, NULL, NULL, NULL, <totals>
    FROM keyed WHERE part <> 1
),
<opening>known AS (
    -- What depends on an unknown SENT is null; so is SENT itself in an empty report, unless the app asked
    -- for, or any if none is, has logged one. What devices did around a message is null where nobody
    -- looked.
    SELECT c.is_total, coalesce(c.app, $4) AS app, c.campaign_id, c.one, c.two,
        test_excluded, late, clicks_total,
        CASE WHEN has_sent THEN sent END AS sent,
        CASE WHEN failed_unknown = 0 THEN failed END AS failed,
        CASE WHEN has_sent AND failed_unknown = 0 THEN accepted END AS accepted,
        observed, delivered, implied, clicked, actions, dismissed, inbox_opened, engaged,
        CASE WHEN <has journey> THEN influenced END AS influenced,
        CASE WHEN <has journey> THEN converted END AS converted,
        CASE WHEN <has journey> THEN coalesce(o.reversed, 0) END AS clicks_before_receipts,
        o.p50, o.p90, o.p99, o.opened,
        CASE WHEN has_sent THEN clicks_without_send END AS clicks_without_send,
        CASE WHEN failed_unknown = 0 THEN failed_but_clicked END AS failed_but_clicked,
        CASE WHEN has_sent THEN delivered_of_sent END AS delivered_of_sent,
        CASE WHEN has_sent THEN loud_sent END AS loud_sent,
        CASE WHEN has_sent AND failed_unknown = 0 THEN loud_accepted END AS loud_accepted,
        loud_delivered, loud_click,
        CASE WHEN has_sent THEN loud_click_of_sent END AS loud_click_of_sent,
        CASE WHEN has_sent AND failed_unknown = 0 THEN loud_click_of_accepted END
            AS loud_click_of_accepted,
        loud_engaged, loud_dismissed,
        CASE WHEN <has journey> THEN loud_influenced END AS loud_influenced,
        CASE WHEN <has journey> THEN loud_converted END AS loud_converted,
        CASE WHEN <has journey> THEN loud_actions END AS loud_actions, buttons,
        array_remove(ARRAY[
            CASE WHEN campaign_mismatch > 0 THEN 'campaign_mismatch' END,
            CASE WHEN loud_click = loud_delivered AND loud_delivered > 30 THEN 'ctr_100_percent' END,
            CASE WHEN sent_unknown > 0 THEN 'sent_without_device' END,
            CASE WHEN biased > 0 THEN 'receipt_biased' END,
            CASE WHEN <has journey> AND o.reversed > 0 THEN 'clicks_before_receipts' END,
            -- A few launches right after a message are chance.
            CASE WHEN <has journey> AND loud_delivered > 30 AND loud_click = 0
                AND launched_soon * 50 >= loud_delivered THEN 'taps_not_forwarded' END], NULL) AS flags
    FROM (
            SELECT *, CASE
                WHEN units > test_excluded THEN unsent = 0
                WHEN units > 0 THEN unsent_excluded = 0
                ELSE EXISTS (SELECT FROM sending WHERE $4::text IS NULL OR app = $4) END AS has_sent
            FROM counted <page>) c
        <opening join>
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
