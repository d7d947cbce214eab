-- The units that are not special, as CTE `plain`: cells, which stand for `n` units that are alike,
-- grouped by what is asked for and no more, as there may be millions. Placeholder `cells` is where
-- they are; `cell campaign`, `cell first`, `cell second` and `quarter` are columns of theirs, or null
-- where nothing is by them; `calendar` joins the first quarter of the day or hour that rows are by.
-- Where rows are by what is of an event, `pieces` joins the pieces of the units, as `p`: then `grouped
-- states` and `grouped action` have what these are made of, and `plain first` and the others are theirs.
plain AS (
    SELECT e.app, e.campaign_id, <plain first> AS first, <plain second> AS second,
        to_timestamp(e.quarter * 900::float8) AS first_at, <states> AS states,
        e.states & (1 << 21) <> 0 AS is_test, false AS campaign_mismatch,
        false AS sent_unknown, false AS failed_unknown, e.n, <clicks> AS clicks, <late> AS late,
        <part> AS part
    FROM (
        SELECT e.app, <cell campaign> AS campaign_id, <cell first> AS first,
            <cell second> AS second, <quarter> AS quarter, <grouped states> AS states,
            <grouped action> AS action_id,
            sum(e.units) AS n, sum(e.clicks) AS clicks, sum(e.late) AS late
        FROM <cells> e<calendar>
        WHERE ($4::text IS NULL OR e.app = $4)
            AND ($5::text IS NULL OR e.campaign_id = $5
                OR $5 = '(unattributed)' AND e.campaign_id IS NULL)
        GROUP BY 1, 2, 3, 4, 5, 6, 7) e<pieces>
)
