-- The units whose merge is certain, as CTE `plain`: all of tapline.unit but those in $2.
plain AS (
    SELECT e.unit, e.app, e.campaign_id, <first> AS first, <second> AS second,
        coalesce(e.sent_at, e.first_at) AS first_at, e.states, e.clicks::bigint, e.late::bigint,
        e.states & (1 << 21) <> 0 OR tapline.unit_device(e.unit) IN (
            SELECT tapline.hash64(app, device_id) FROM tapline.test_device) AS is_test,
        false AS campaign_mismatch, false AS sent_unknown, false AS failed_unknown
    FROM tapline.unit e
    WHERE NOT EXISTS (SELECT FROM unnest($2::uuid[]) a(unit) WHERE a.unit = e.unit)
        AND ($5::text IS NULL OR e.app = $5)
)
