import Postgres

/// Categories of interactive notifications and their buttons.
package enum Categories {
    /// The categories of each app as `registerDevice` of Pushwoosh answers them: a JSON array on one line.
    package static func json(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [(app: String, json: String)] {
        let result = try connection.statement(
            """
            SELECT c.app, jsonb_agg(jsonb_build_object(
                'categoryId', c.category_id, 'label', c.label,
                'buttons', coalesce(b.buttons, '[]')) ORDER BY c.category_id COLLATE "C")::text
            FROM tapline.category c LEFT JOIN (
                SELECT app, category_id, jsonb_agg(jsonb_build_object(
                    'id', action_id, 'label', label,
                    'type', CASE WHEN type ~ '^(0|[1-9][0-9]{0,8})$' THEN to_jsonb(type::int)
                        ELSE to_jsonb(type) END,
                    'startApplication', opens_app::int) ORDER BY place, action_id) AS buttons
                FROM tapline.category_button GROUP BY app, category_id) b
                ON b.app = c.app AND b.category_id = c.category_id
            GROUP BY c.app
            """)
        return (0..<result.rows).map { row in
            (result.string(row, 0) ?? "", result.string(row, 1) ?? "[]")
        }
    }
}

extension Categories {
    /// A kind of interactive notification.
    package struct Category: Equatable, Sendable {
        package let id: String
        package let label: String?
        package let buttons: [Button]

        package init(id: String, label: String?, buttons: [Button]) {
            self.id = id
            self.label = label
            self.buttons = buttons
        }
    }

    /// A button of a category.
    package struct Button: Equatable, Sendable {
        /// What events report as `action_id`.
        package let id: String
        package let label: String?
        package let type: String?
        /// Whether it opens the app; nil is not known.
        package let opensApp: Bool?

        package init(id: String, label: String?, type: String?, opensApp: Bool?) {
            self.id = id
            self.label = label
            self.type = type
            self.opensApp = opensApp
        }
    }

    /// Adds categories of an app, or puts them in place of those of the same id.
    ///
    /// All of it is one transaction, in one order with the loads. Where it changes what stored events are,
    /// they are counted anew within it.
    ///
    /// - Parameter replacesAll: Whether the app's other categories go.
    /// - Returns: Whether events were counted anew.
    package static func put(
        _ connection: borrowing PostgresConnection, _ categories: [Category], app: String,
        replacesAll: Bool
    ) throws(LoadError) -> Bool {
        do throws(LoadError) {
            _ = try connection.statement("BEGIN")
            _ = try connection.statement("SET LOCAL statement_timeout = 0")
            let isRecounted = try replace(
                connection, categories, app: app, replacesAll: replacesAll)
            _ = try connection.statement("COMMIT")
            return isRecounted
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }

    private static func replace(
        _ connection: borrowing PostgresConnection, _ categories: [Category], app: String,
        replacesAll: Bool
    ) throws(LoadError) -> Bool {
        // In the order of tapline.rebuild_cells, which takes both again.
        _ = try connection.statement(
            "SELECT pg_advisory_xact_lock(hashtextextended('tapline.cells', 0))")
        _ = try connection.statement("SELECT FROM tapline.turn FOR UPDATE")
        _ = try connection.statement(
            """
            CREATE TEMP TABLE old_button ON COMMIT DROP AS
            SELECT app, category_id, action_id, opens_app FROM tapline.category_button
            """)
        let ids = categories.map(\.id)
        _ = try connection.statement(
            "DELETE FROM tapline.category WHERE app = $1 AND ($3 OR category_id = ANY ($2))",
            [.text(app), .textArray(ids), .bool(replacesAll)])
        _ = try connection.statement(
            """
            INSERT INTO tapline.category (app, category_id, label)
            SELECT $1, * FROM unnest($2::text[], $3::text[])
            """, [.text(app), .textArray(ids), .textArray(categories.map(\.label))])
        let buttons = categories.flatMap { category in
            category.buttons.enumerated().map { (category.id, $0.offset, $0.element) }
        }
        _ = try connection.statement(
            """
            INSERT INTO tapline.category_button
                (app, category_id, action_id, place, label, type, opens_app)
            SELECT $1, c, a, p, l, t, o::boolean
            FROM unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[])
                AS u (c, a, p, l, t, o)
            """,
            [
                .text(app), .textArray(buttons.map(\.0)), .textArray(buttons.map(\.2.id)),
                .int32Array(buttons.map { Int32($0.1) }), .textArray(buttons.map(\.2.label)),
                .textArray(buttons.map(\.2.type)),
                .textArray(buttons.map { $0.2.opensApp.map { "\($0)" } }),
            ])
        let affected = try connection.statement(
            """
            SELECT EXISTS (
                SELECT FROM tapline.event e WHERE e.type = 8 AND e.opens_app IS NULL AND e.app = $1
                    AND (e.category_id, e.action_id) IN (
                        SELECT category_id, action_id
                        FROM old_button o FULL JOIN tapline.category_button b
                            USING (app, category_id, action_id)
                        WHERE app = $1 AND coalesce(o.opens_app, false) <> coalesce(b.opens_app, false)))
            """, [.text(app)])
        guard affected.bool(0, 0) == true else {
            // Daemons then read the buttons again.
            _ = try connection.statement("UPDATE tapline.turn SET generation = generation + 1")
            return false
        }
        // What daemons wrote for each other of the open segment says what the events were before.
        _ = try connection.statement("DELETE FROM tapline.batch_news")
        _ = try connection.statement("SELECT tapline.rebuild_cells()")
        return true
    }

    /// All categories, by app.
    package static func all(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [(app: String, category: Category)] {
        let result = try connection.statement(
            """
            SELECT c.app, c.category_id, c.label, b.action_id, b.label, b.type, b.opens_app::text
            FROM tapline.category c LEFT JOIN tapline.category_button b USING (app, category_id)
            ORDER BY c.app, c.category_id, b.place
            """)
        var found: [(app: String, category: Category)] = []
        for row in 0..<result.rows {
            let (app, id) = (result.string(row, 0) ?? "", result.string(row, 1) ?? "")
            var buttons: [Button] = []
            if let last = found.last, last.app == app, last.category.id == id {
                buttons = found.removeLast().category.buttons
            }
            if let button = result.string(row, 3) {
                buttons.append(
                    Button(
                        id: button, label: result.string(row, 4), type: result.string(row, 5),
                        opensApp: result.string(row, 6).map { $0 == "true" }))
            }
            found.append((app, Category(id: id, label: result.string(row, 2), buttons: buttons)))
        }
        return found
    }
}
