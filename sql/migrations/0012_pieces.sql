-- Cells know all dimensions: docs/storage.md "Cells". They are made anew once the functions are.
-- Locks in the order in which daemons of older versions take them.
SELECT pg_advisory_xact_lock(hashtextextended('tapline.cells', 0));
LOCK TABLE tapline.turn;
ALTER TABLE tapline.cell_change
    ADD action_id text, ADD category_id text, ADD push_group text, ADD topic text;
ALTER TABLE tapline.cell_past
    ADD action_id text, ADD category_id text, ADD push_group text, ADD topic text;
ALTER TABLE tapline.cell
    ADD action_id text, ADD category_id text, ADD push_group text, ADD topic text;
ALTER TABLE tapline.cell_dimension
    ADD action_id text, ADD category_id text, ADD push_group text, ADD topic text;
ALTER TABLE tapline.cell_time
    ADD action_id text, ADD category_id text, ADD push_group text, ADD topic text;
COMMENT ON COLUMN tapline.cell_change.action_id IS
    'the button of the units'' actions: empty for actions without one, null for no action';
COMMENT ON COLUMN tapline.cell_change.states IS
    'bits of tapline.event_states, of all events of the units; 17: an event that is no action names one, 18: an action that opens the app; from bit 26 on the type of the events that clicks and late count';

ALTER TABLE tapline.turn ADD cells_format int NOT NULL DEFAULT 0;
COMMENT ON COLUMN tapline.turn.cells_format IS
    'which version of sql/cells/rebuild.sql made the cells: older ones are made anew';

CREATE FUNCTION tapline.group_properties(properties text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN strpos(properties, '"push_group"') > 0 OR strpos(properties, '"topic"') > 0 THEN (
        SELECT '{' || string_agg(to_json(name)::text || ':' || (parsed -> name)::text, ',' ORDER BY name) || '}'
        FROM unnest(ARRAY['push_group', 'topic']) name, (SELECT properties::json AS parsed) p
        WHERE json_typeof(parsed -> name) = 'string' AND parsed ->> name <> '') END
$$;
COMMENT ON FUNCTION tapline.group_properties IS
    'the members of an event''s properties that reports know, push_group and topic; null where there are none';

-- Until the functions are made nobody merges what has other columns.
DROP FUNCTION IF EXISTS tapline.merge_cells, tapline.rebuild_cells
