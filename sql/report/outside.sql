-- The events of units that devices did something about, as CTE `effects`, and what devices did that names no
-- message: for journeys of units that cells have counted. Their columns are those of `columns.sql`.
effects AS MATERIALIZED (
    SELECT * FROM tapline.effect_events($1, $4, $5, $effect$<columns>$effect$) AS e(
        key uuid, unit uuid, event_time timestamptz, type smallint, app text, inbox_unit uuid,
        campaign_id text, first text, second text, piece_one text, piece_two text, in_piece boolean,
        device_time timestamptz, category_id text, action_id text, no_device boolean, in_inbox boolean,
        states int, late boolean, is_outside boolean)
)