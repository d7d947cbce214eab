-- The units that are not special, as CTE `plain` or of another name: cells, which stand for `n` units that are alike.
-- Placeholder `cells` is where they are; `cell campaign`, `cell first`, `cell second` and `quarter` are
-- columns of theirs, or null where nothing is by them. They are grouped by what is asked for and no
-- more, as there may be millions, but where nearly every cell would be a group of its own.
-- Where rows are by what is of an event, `pieces` joins the pieces of the units, as `p`: then `grouped
-- states` and `grouped action` have what these are made of, and `plain first` and the others are theirs.
<name> AS (
    SELECT e.app, <campaign> AS campaign_id, <plain first> AS one, <plain second> AS two, e.quarter,
        <states> AS states, e.states & (1 << 21) <> 0 AS is_test, false AS campaign_mismatch,
        false AS sent_unknown, false AS failed_unknown, <part> AS part,
        e.units AS n, <clicks> AS clicks, <late> AS late
    FROM (
        SELECT e.app, <cell campaign> AS campaign_id, <cell first> AS first,
            <cell second> AS second, <quarter> AS quarter, <grouped states> AS states,
            <grouped action> AS action_id, <counts of cells>
        FROM <cells> e
        WHERE ($4::text IS NULL OR e.app = $4)
            AND ($5::text IS NULL OR e.campaign_id = $5
                OR $5 = '(unattributed)' AND e.campaign_id IS NULL)
        <groups of cells>) e<pieces>
)
