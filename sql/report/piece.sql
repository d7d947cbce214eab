-- Units cut into pieces, as CTE `<pieces of units>`: a row of the report counts what the events of a unit that are
-- in it say, and the totals what they say together. A unit is silent or of a test device as a whole,
-- and what its device did is counted where the piece is delivered, or clicked.
piece AS (
    SELECT target AS unit, piece_one, piece_two, bit_or(states) AS states,
        count(*) FILTER (WHERE states & (1 << 20) <> 0) AS clicks,
        count(*) FILTER (WHERE late) AS late
    FROM joined WHERE in_piece GROUP BY target, piece_one, piece_two
), part AS (
    SELECT unit, piece_one, piece_two, states, clicks, late, 1 AS part FROM piece
    UNION ALL
    SELECT unit, NULL, NULL, bit_or(states), sum(clicks)::bigint, sum(late)::bigint, 2
    FROM piece GROUP BY unit
), <pieces of units> AS (
    SELECT x.app, x.campaign_id, <piece first> AS first, <piece second> AS second, x.first_at,
        p.states | (x.states & (3 << 21))
            | CASE WHEN p.states & (<delivered>) <> 0 THEN x.states & (5 << 23) ELSE 0 END
            | CASE WHEN p.states & (1 << 20) <> 0 THEN x.states & (1 << 24) ELSE 0 END AS states,
        x.is_test, x.campaign_mismatch, x.sent_unknown, x.failed_unknown, x.n, p.clicks, p.late,
        p.part, x.unit, p.piece_one, p.piece_two
    FROM exact x JOIN part p ON p.unit = x.unit
)
