-- The first rows, where there are many and their order is of keys alone, from CTE `each`, which is as
-- `alike`: all of what these are made of, as `part` 1, and what the totals are, as 2. These are of
-- `entire`, which is `each`, or where no time is asked for the same units by campaign alone.
keys AS MATERIALIZED (
    SELECT app, campaign_id, quarter FROM each
    GROUP BY app, campaign_id, quarter HAVING tapline.total(n) <> 0
), top AS MATERIALIZED (
    SELECT app, campaign_id, quarter
    FROM (
        SELECT false AS is_total, s.app, s.campaign_id, s.quarter, k.one, k.two
        FROM keys s<labels>) k
    <first rows>
), reach AS MATERIALIZED (
    -- To look up a key takes longer than to see that it is none of these.
    SELECT min(campaign_id COLLATE "C") AS first, max(campaign_id COLLATE "C") AS last,
        min(quarter) AS since, max(quarter) AS until
    FROM top
), alike AS (
    SELECT e.app, e.campaign_id, e.one, e.two, e.quarter, e.states, e.is_test, e.campaign_mismatch,
        e.sent_unknown, e.failed_unknown, 1 AS part, e.n, e.clicks, e.late
    FROM each e JOIN top USING (app, campaign_id, quarter)
    WHERE e.campaign_id COLLATE "C" >= (SELECT first FROM reach)
        AND e.campaign_id COLLATE "C" <= (SELECT last FROM reach)
        AND e.quarter BETWEEN (SELECT since FROM reach) AND (SELECT until FROM reach)
    UNION ALL
    SELECT app, NULL, NULL, NULL, NULL::int, states, is_test, campaign_mismatch, sent_unknown,
        failed_unknown, 2, tapline.total(n), tapline.total(clicks), tapline.total(late)
    FROM <entire> GROUP BY app, states, is_test, campaign_mismatch, sent_unknown, failed_unknown
)
