-- A report of one campaign need not compute the special units of others. The functions that fill the column
-- are made after the migrations; until they have, nothing is known of it, which is no harm.
ALTER TABLE tapline.special_unit ADD campaigns text[];
COMMENT ON COLUMN tapline.special_unit.campaigns IS
    'the campaigns that events of the unit in the segment name; null: not known'
;

-- For journeys of units that cells have counted: the events of all units that were clicked or pressed (of one
-- campaign: and of units without one), of all units of devices that launched the app or bought something, and these launches and conversions.
-- Two scans by several processes, of which the first only finds units and devices; or one, and look-ups.
CREATE FUNCTION tapline.effect_events(newest bigint, of_app text, of_campaign text, columns text)
RETURNS SETOF record
LANGUAGE plpgsql STABLE ROWS 1000000
-- Rows that are handed from one process to another cost a fraction of what each costs to be found.
SET parallel_tuple_cost = 0.005 SET enable_nestloop = off SET enable_seqscan = on
AS $$
DECLARE
    selected text := 'SELECT ' || columns || ', e.message_uid IS NULL AS is_outside FROM ';
    pressed uuid[];
    devices bytea[];
    around bytea[];
    has_loose boolean;
    number int;
    -- Of now it is every batch, and the column is the last but one of a row.
    is_then text := CASE WHEN newest < (SELECT batch FROM tapline.turn) THEN 'batch <= $1'
        ELSE 'true' END;
BEGIN
    -- Dynamic, so that the planner knows what is asked for, and that several processes may do it.
    EXECUTE format(
        $query$
        SELECT array_agg(unit) FILTER (
                WHERE type IN (7, 8) AND message_uid IS NOT NULL AND (%1$s OR campaign_id IS NULL)),
            array_agg(tapline.unit_device(unit)) FILTER (WHERE type IN (14, 16)),
            array_agg(tapline.unit_device(unit)) FILTER (WHERE %2$s),
            coalesce(bool_or(type IN (14, 16) AND message_uid IS NOT NULL
                AND tapline.unit_device(unit) = '\x0000000000000000'), false)
        FROM tapline.event
        WHERE (type IN (7, 8, 14, 16) OR %2$s) AND ($2 IS NULL OR app = $2) AND %3$s
        $query$,
        CASE WHEN of_campaign IS NULL THEN 'true' ELSE 'campaign_id = $3' END,
        -- A unit without a campaign has no event that names one.
        CASE WHEN of_campaign IS NULL THEN 'false'
            WHEN of_campaign = '(unattributed)'
                THEN 'message_uid IS NOT NULL AND (campaign_id IS NULL OR campaign_id = $3)'
            ELSE 'campaign_id = $3' END,
        is_then)
    INTO pressed, devices, around, has_loose USING newest, of_app, of_campaign;
    pressed := ARRAY(SELECT DISTINCT unnest(pressed));
    devices := nullif(ARRAY(
        SELECT DISTINCT device FROM (
            SELECT unnest(devices)
            -- A launch or conversion that names a message and no device is of that message's only one, and
            -- all units of such a message are special.
            UNION ALL SELECT tapline.unit_device(unit) FROM tapline.special_unit WHERE has_loose) d(device)
        WHERE device <> '\x0000000000000000'
            AND (of_campaign IS NULL OR device IN (
                SELECT unnest(around)
                -- Of these it is not known here of which campaign they are.
                UNION ALL SELECT tapline.unit_device(unit) FROM tapline.special_unit))), '{}');

    IF devices IS NULL AND cardinality(pressed) <= 20000 THEN
        -- For this function alone. The planner knows nothing of units, and takes them for all there are.
        PERFORM set_config('enable_seqscan', 'off', true);
        FOR number IN
            SELECT segment FROM tapline.segment
            WHERE to_regclass(format('tapline.event_%s', segment)) IS NOT NULL ORDER BY segment
        LOOP
            RETURN QUERY EXECUTE selected || format(
                'tapline.event_%s e WHERE e.unit = ANY ($2) AND e.message_uid IS NOT NULL AND %s',
                number, is_then)
            USING newest, pressed;
        END LOOP;
        RETURN;
    END IF;
    -- Joins, and not arrays to look into: those the planner would copy for each segment and each process.
    RETURN QUERY EXECUTE selected
        || 'tapline.event e '
        || CASE WHEN devices IS NULL THEN '' ELSE
            'LEFT JOIN unnest($4) d(device) ON d.device = tapline.unit_device(e.unit) LEFT '
            END
        || $query$
        JOIN unnest($3) p(unit) ON p.unit = e.unit
        WHERE ($2 IS NULL OR e.app = $2) AND
        $query$
        || is_then || CASE WHEN devices IS NULL THEN ' AND e.message_uid IS NOT NULL' ELSE
            ' AND (p.unit IS NOT NULL AND e.message_uid IS NOT NULL OR d.device IS NOT NULL '
            'AND (e.message_uid IS NOT NULL OR e.type IN (14, 16)))' END
    USING newest, of_app, pressed, devices;
END
$$;
COMMENT ON FUNCTION tapline.effect_events IS
    'What "columns" says of the events of units that devices did something about, and whether the event names no message'
