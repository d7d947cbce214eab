(SELECT * FROM tapline.event e
    WHERE e.batch <= $1 AND e.message_uid IS NULL AND e.type IN (14, 16)
        AND ($4::text IS NULL OR e.app = $4)) e
