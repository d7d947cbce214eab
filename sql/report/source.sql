-- The events a report is made of, as CTE `source`: batches up to $1, of app $4 if one is asked for.
-- Placeholder `from` is all of tapline.event, or CTE `special`; `columns` are those of `columns.sql`;
-- `effects` adds what devices did around the units of cells, or what is in the period of other than special
-- units, or nothing.
source AS MATERIALIZED (
    SELECT <columns>
    FROM <from>
    WHERE e.batch <= $1 AND e.message_uid IS NOT NULL
        -- Not "$4 IS NULL OR ...": the planner would take an app for a 200th of the events, and loop.
        AND coalesce(e.app = $4::text, true)<effects>
)
