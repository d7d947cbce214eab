-- The pieces of the units of a cell `e` by the type of their events; part 2 is the units as a whole. The
-- bits of a type say what its events do, but for an action, which may open the app or not (18).
-- Clicks and late events are those of the type that the cell names.
CROSS JOIN LATERAL (
    SELECT 2 AS part, NULL::text AS type, NULL::text AS action, e.states & <plain states> AS states,
        e.clicks, e.late
    UNION ALL
    SELECT 1, t.word, CASE WHEN t.code = 8 THEN nullif(e.action_id, '') END,
        (1 << t.code) | (e.states & (3 << 21)) | CASE t.code
            WHEN 3 THEN e.states & (1 << 19)
            WHEN 7 THEN 1 << 20
            WHEN 8 THEN CASE WHEN e.states & (1 << 18) <> 0 THEN 1 << 20 ELSE 0 END
            ELSE 0 END,
        CASE WHEN e.states >> 26 = t.code THEN e.clicks ELSE 0 END,
        CASE WHEN e.states >> 26 = t.code THEN e.late ELSE 0 END
    FROM (VALUES <type words>) t(code, word) WHERE e.states & (1 << t.code) <> 0
) p
