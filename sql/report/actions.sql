-- The pieces of the units of a cell `e` by the button of their events: the actions with the button that
-- the cell names, and all else. As in `types.sql`.
CROSS JOIN LATERAL (
    SELECT 2 AS part, NULL::text AS action, e.states & <plain states> AS states, e.clicks, e.late
    UNION ALL
    SELECT 1, e.action_id,
        (1 << 8) | (e.states & (3 << 21))
            | CASE WHEN e.states & (1 << 18) <> 0 THEN 1 << 20 ELSE 0 END,
        CASE WHEN e.states >> 26 = 8 THEN e.clicks ELSE 0 END,
        CASE WHEN e.states >> 26 = 8 THEN e.late ELSE 0 END
    WHERE e.action_id <> ''
    UNION ALL
    SELECT 1, NULL, e.states & <plain states> & ~(1 << 8)
            & CASE WHEN e.states & (1 << 7) = 0 THEN ~(1 << 20) ELSE -1 END,
        CASE WHEN e.states >> 26 = 8 THEN 0 ELSE e.clicks END,
        CASE WHEN e.states >> 26 = 8 THEN 0 ELSE e.late END
    WHERE e.action_id <> '' AND e.states & (((1 << 17) - 1) & ~(1 << 8)) <> 0
    UNION ALL
    SELECT 1, NULL, e.states & <plain states>, e.clicks, e.late
    WHERE coalesce(e.action_id, '') = ''
) p
