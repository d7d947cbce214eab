-- What a report looks at of an event `e`, as the columns of CTE `source`. `first` and `second` are the columns
-- of the dimensions asked for, or null; `piece one` and `piece two` the same for those that are of an
-- event and not of its unit, and `in piece` whether the event counts there (docs/reports.md).
e.key, e.unit, e.event_time, e.type, e.app, e.inbox_unit, e.campaign_id,
    <first> AS first, <second> AS second,
    <piece one> AS piece_one, <piece two> AS piece_two, <in piece> AS in_piece,
    <device time> AS device_time, <category> AS category_id, <action> AS action_id,
    e.device_id IS NULL AS no_device, e.type BETWEEN 10 AND 13 AS in_inbox,
    tapline.event_states(e.type,
        tapline.opens_app(e.type, e.opens_app, e.app, e.category_id, e.action_id), e.is_test, e.silent, e.platform,
        e.type_raw) AS states,
    tapline.event_is_late(e.received_at, e.event_time) AS late
