import Postgres

/// What categories and their buttons are called, as `tapline category import` said it last.
struct ButtonLabels {
    /// A category, or a button of one or of any category; no app stands for all of them.
    struct Key: Hashable {
        let app: String?
        let category: String?
        let action: String?
    }

    /// What to ask for each key: of a button that several categories have, the label if it is the same.
    static let statement = """
        SELECT r.place, CASE WHEN count(DISTINCT l.label) = 1 THEN min(l.label) END
        FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
                r(app, category_id, action_id, place),
            LATERAL (
                SELECT c.label FROM tapline.category c
                WHERE r.action_id IS NULL AND c.category_id = r.category_id
                    AND (r.app IS NULL OR c.app = r.app)
                UNION ALL
                SELECT b.label FROM tapline.category_button b
                WHERE b.action_id = r.action_id AND (r.app IS NULL OR b.app = r.app)
                    AND (r.category_id IS NULL OR b.category_id = r.category_id)) l
        GROUP BY r.place
        """

    private(set) var keys: [Key] = []
    private var known: Set<Key> = []
    private var labels: [Key: String] = [:]

    mutating func ask(_ key: Key) {
        guard key.category != nil || key.action != nil, known.insert(key).inserted else { return }
        keys.append(key)
    }

    /// The label of a key that was asked for; nil where there is none.
    subscript(key: Key) -> String? {
        get { labels[key] }
        set { labels[key] = newValue }
    }

    /// The key of a dimension of a row; nil for one that has no labels.
    static func key(_ by: [ReportDimension], _ row: ReportRow, _ index: Int) -> Key? {
        let others = by.filter { $0 != .campaign }
        switch others[index] {
        case .category: return Key(app: row.app, category: row.dimensions[index], action: nil)
        case .action:
            let category = others.firstIndex(of: .category).flatMap { row.dimensions[$0] }
            return row.dimensions[index].map {
                Key(app: row.app, category: category, action: $0)
            }
        default: return nil
        }
    }

    static func key(_ share: ActionShare, _ row: ReportRow, isOfAction: Bool) -> Key {
        Key(app: row.app, category: share.category, action: isOfAction ? share.action : nil)
    }
}
