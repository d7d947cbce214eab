-- The first rows, where there are many and their order is of keys alone, from CTE `each`, which is as
-- `alike`: all of what these are made of, as `part` 1, and what the totals are, as 2.
keys AS MATERIALIZED (
    SELECT app, campaign_id, quarter FROM each
    GROUP BY app, campaign_id, quarter HAVING tapline.total(n) <> 0
), top AS (
    SELECT app, campaign_id, quarter
    FROM (
        SELECT false AS is_total, s.app, s.campaign_id, s.quarter, k.one, k.two
        FROM keys s<labels>) k
    <first rows>
), alike AS (
    SELECT e.app, e.campaign_id, e.one, e.two, e.quarter, e.states, e.is_test, e.campaign_mismatch,
        e.sent_unknown, e.failed_unknown, 1 AS part, e.n, e.clicks, e.late
    FROM each e JOIN top USING (app, campaign_id, quarter)
    UNION ALL
    SELECT app, NULL, NULL, NULL, NULL::int, states, is_test, campaign_mismatch, sent_unknown,
        failed_unknown, 2, tapline.total(n), tapline.total(clicks), tapline.total(late)
    FROM each GROUP BY app, states, is_test, campaign_mismatch, sent_unknown, failed_unknown
)
