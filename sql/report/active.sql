
    UNION ALL
    -- Of the units that are not special those with an event in the period: no other is in any row, and what
    -- such a unit is it knows by itself.
    SELECT <columns>
    FROM tapline.event e
    WHERE e.batch <= $1 AND e.message_uid IS NOT NULL AND coalesce(e.app = $4::text, true)
        AND e.unit IN (SELECT e.unit FROM tapline.event e
            WHERE e.batch <= $1 AND e.message_uid IS NOT NULL AND <in piece>)
        AND NOT <is special>
