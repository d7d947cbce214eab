-- What moves the changes of closed segments, called by daemons between loads.
CREATE OR REPLACE FUNCTION tapline.merge_cells() RETURNS int
LANGUAGE plpgsql SET jit = off SET work_mem = '128MB' AS $$
DECLARE
    open_segment int;
    number int;
    done int;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('tapline.cells', 0)) THEN
        RETURN 0;
    END IF;
    -- A segment is closed under the lock that load transactions hold to their end, so whoever sees
    -- that one is open sees every change of those before it.
    SELECT segment INTO STRICT open_segment FROM tapline.turn;
    IF NOT EXISTS (
        SELECT FROM tapline.segment WHERE state = 'closing' AND segment < open_segment) THEN
        RETURN 0;
    END IF;
    -- In one statement, and not by TRUNCATE: a snapshot has each row once, here or there.
    WITH moved AS (
        DELETE FROM tapline.cell_change WHERE segment < open_segment RETURNING *
    ), kept AS (
        INSERT INTO tapline.cell_past SELECT * FROM moved ORDER BY segment, batch
    ), merged AS (
        INSERT INTO tapline.cell (segment, quarter, states, units, clicks, late, app, campaign_id,
            <dimensions>)
        SELECT segment, quarter, states, sum(units), sum(clicks), sum(late), app, campaign_id,
            <dimensions>
        FROM moved
        GROUP BY segment, quarter, states, app, campaign_id,
            <dimensions>
        HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
        ORDER BY segment, app, campaign_id, quarter
        RETURNING *
    ), dimensions AS (
        INSERT INTO tapline.cell_dimension (segment, states, units, clicks, late, app, campaign_id,
            <dimensions>)
        SELECT segment, states, sum(units), sum(clicks), sum(late), app, campaign_id,
            <dimensions>
        FROM merged
        GROUP BY segment, states, app, campaign_id,
            <dimensions>
        HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
    ), times AS (
        INSERT INTO tapline.cell_time (segment, quarter, states, units, clicks, late, app,
            <dimensions>)
        SELECT segment, quarter, states, sum(units), sum(clicks), sum(late), app,
            <dimensions>
        FROM merged
        GROUP BY segment, quarter, states, app,
            <dimensions>
        HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
    ), quarters AS (
        INSERT INTO tapline.cell_quarter (
            segment, quarter, states, units, clicks, late, app, campaign_id)
        SELECT segment, quarter, states & <plain states>, sum(units), sum(clicks), sum(late), app,
            campaign_id
        FROM merged GROUP BY segment, quarter, states & <plain states>, app, campaign_id
        HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
        ORDER BY segment, app, campaign_id, quarter
        RETURNING *
    )
    INSERT INTO tapline.cell_hour (segment, hour, states, units, clicks, late, app, campaign_id)
    SELECT segment, quarter >> 2, states, sum(units), sum(clicks), sum(late), app, campaign_id
    FROM quarters GROUP BY segment, quarter >> 2, states, app, campaign_id
    HAVING sum(units) <> 0 OR sum(clicks) <> 0 OR sum(late) <> 0
    ORDER BY segment, app, campaign_id, quarter >> 2;
    PERFORM brin_summarize_new_values('tapline.cell_place'),
        brin_summarize_new_values('tapline.cell_quarter_place'),
        brin_summarize_new_values('tapline.cell_hour_place'),
        brin_summarize_new_values('tapline.cell_past_place');

    -- Last, as the rows are locked to the end. Where special units are many a report computes them anyhow.
    -- Of a segment that was just closed all rows are made exact: until then they say what loaders knew. Events of
    -- an inbox or without a device may count with another unit: where only such name a campaign, in all segments, what
    -- is left may be of any.
    IF (SELECT count(*) FROM (SELECT FROM tapline.special_unit LIMIT 1001) few) <= 1000 THEN
        FOR number IN
            SELECT DISTINCT s.segment FROM tapline.special_unit s JOIN tapline.segment g USING (segment)
            WHERE (campaigns IS NULL OR g.state = 'closing') AND segment < open_segment
                AND to_regclass(format('tapline.event_%s', segment)) IS NOT NULL
        LOOP
            EXECUTE format(
                $query$
                UPDATE tapline.special_unit s SET campaigns = (
                    SELECT CASE WHEN bool_or(tapline.unit_device(unit) <> '\x0000000000000000'
                                AND type NOT BETWEEN 10 AND 13) IS NOT FALSE
                            OR EXISTS (SELECT FROM tapline.special_unit o
                                WHERE o.unit = s.unit AND o.segment <> s.segment AND o.campaigns <> '{}')
                        THEN coalesce(array_agg(DISTINCT campaign_id), '{}') END
                    FROM tapline.event_%1$s e
                    WHERE e.unit = s.unit AND campaign_id IS NOT NULL)
                WHERE segment = %1$s
                $query$, number);
        END LOOP;
    END IF;

    UPDATE tapline.segment SET state = 'sealed'
    WHERE state = 'closing' AND segment < open_segment;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;
COMMENT ON FUNCTION tapline.merge_cells IS
    'Moves the changes of closed segments to tapline.cell and its sums and seals them; returns how many it sealed, 0 where another session is at it'
