
    UNION ALL
    SELECT e.key, e.unit, e.event_time, e.type, e.app, e.inbox_unit, e.campaign_id, e.first, e.second,
        e.piece_one, e.piece_two, e.in_piece, e.device_time, e.category_id, e.action_id, e.no_device,
        e.in_inbox, e.states, e.late
    FROM effects e WHERE NOT e.is_outside AND NOT <is special>