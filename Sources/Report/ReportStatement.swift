import Schema

/// Puts the statement of a report together from `sql/report/`.
struct ReportStatement {
    /// The statement; its parameters are described in the files.
    let sql: String

    init(_ options: ReportOptions, from source: Schema.UnitSource) {
        let places = Places(options, source)
        let order = "ORDER BY \(Self.order(options))"
        let keys = Schema.CellKeys(
            time: places.time, hasCampaign: options.by.contains(.campaign),
            isUTC: options.timeZone == "UTC",
            hasPeriod: options.from != nil || options.to != nil,
            first: options.top != nil && options.isByKeys
                ? order + " LIMIT $7 + \(options.offset)" : nil)
        var text = Schema.reportResult(from: source, by: keys)
        if options.offset == 0 {
            text += Self.selection + order + " LIMIT $7"
        } else {
            // The totals are the first row of every page.
            text += "\nSELECT \(Self.columns) FROM (SELECT *, row_number() OVER "
            text += "(\(order)) AS place FROM result) placed\n"
            text += "WHERE place = 1 OR place > \(options.offset) + 1 ORDER BY place LIMIT $7"
        }
        let isByCampaign = options.by.contains(.campaign)
        // Where the order is of what is summed, rates are only of the rows that are asked for.
        let isSoon =
            options.top != nil && options.offset == 0 && places.versionFlags.isEmpty
            && (options.isByKeys || options.isByDelivered)
        let page = isSoon ? order + " LIMIT $7" : "OFFSET 0"
        sql = text.filled([
            "version flags": places.versionFlags,
            "first": places[0].column, "second": places[1].column,
            "cell first": places[0].cellColumn, "cell second": places[1].cellColumn,
            "plain first": places[0].plainColumn ?? "e.first",
            "plain second": places[1].plainColumn ?? "e.second",
            "type words": ReportDimension.typeWords,
            "one": places[0].key, "two": places[1].key,
            "piece one": places[0].piece, "piece two": places[1].piece,
            "piece first": places[0].ofPiece ? "p.piece_one" : "x.first",
            "piece second": places[1].ofPiece ? "p.piece_two" : "x.second",
            "campaign": isByCampaign ? "coalesce(campaign_id, '(unattributed)')" : "NULL::text",
            "cell campaign": isByCampaign ? "e.campaign_id" : "NULL::text",
            "time one": places[0].label, "time two": places[1].label,
            "one of unit": places[0].ofUnit, "two of unit": places[1].ofUnit,
            "page": page,
            "conversion window": "interval '\(options.conversionHours) hours'",
        ])
    }

    /// How the dimensions but campaign are computed: at most two.
    private struct Places {
        struct Place {
            /// Of an event, for the unit.
            var column = "NULL::text"
            /// Of a cell.
            var cellColumn = "NULL::text"
            /// Of a piece of the units of a cell.
            var plainColumn: String?
            /// Of an event, for the piece of the unit that it belongs to.
            var piece = "NULL::text"
            var ofPiece = false
            /// Of a unit or a piece.
            var key = "NULL::text"
            /// Of the `quarter` of a row.
            var label = "NULL::text"
            /// ``key``, or what is a label of rows by time.
            var ofUnit = "NULL::text"
        }
        private var places = [Place(), Place()]
        private let dimensions: [ReportDimension]
        /// The finest time that rows made of cells are by.
        let time: Schema.CellKeys.Time?

        init(_ options: ReportOptions, _ source: Schema.UnitSource) {
            dimensions = options.by.filter { $0 != .campaign }
            switch source {
            case .events, .active: time = nil
            case .cells, .cellsAndEffects:
                time = dimensions.contains(.hour) ? .hour : dimensions.contains(.day) ? .day : nil
            }
            for (index, dimension) in dimensions.enumerated() {
                let name = index == 0 ? "first" : "second"
                places[index].cellColumn = dimension.cellColumn
                if dimension.isOfEvents { places[index].plainColumn = "p.\(dimension.rawValue)" }
                if dimension.isOfEvents || dimension.isTime && options.isByActivity {
                    places[index].piece = dimension.column
                    places[index].ofPiece = true
                    places[index].key = name
                } else if dimension.isTime {
                    let text = dimension == .day ? Schema.dayKey : Schema.hourKey
                    if let time {
                        places[index].label = text(time.at)
                    } else {
                        places[index].key = text("first_at")
                    }
                } else {
                    places[index].column = dimension.column
                    places[index].key = name
                }
                places[index].ofUnit =
                    time != nil && dimension.isTime
                    ? (dimension == .day ? Schema.dayKey : Schema.hourKey)("first_at")
                    : places[index].key
            }
        }

        subscript(index: Int) -> Place { places[index] }

        private func name(_ index: Int) -> String { index == 0 ? "one" : "two" }

        /// SQL to append the flag of an app version whose click-through is far below that of the one
        /// before it.
        var versionFlags: String {
            guard let index = dimensions.firstIndex(of: .appVersion) else { return "" }
            let other = name(1 - index)
            let version = """
                ARRAY(SELECT m[1]::numeric FROM regexp_matches(\(name(index)), '[0-9]+', 'g') m)
                """
            // Versions of few units are passed over.
            let before = """
                OVER (PARTITION BY is_total, app, campaign_id, \(other),
                    loud_delivered > 30 AND \(name(index)) IS NOT NULL
                    ORDER BY \(version), \(name(index)) COLLATE "C")
                """
            return """
                 || CASE WHEN tapline.is_drop(loud_click::bigint, loud_delivered::bigint,
                    (lag(loud_click) \(before))::bigint, (lag(loud_delivered) \(before))::bigint)
                    THEN ARRAY['ctr_drop'] ELSE ARRAY[]::text[] END
                """
        }
    }

    /// The first column of the counts.
    static let firstCount = 10

    /// Of a rate: its numerator and its denominator.
    static let rateColumns = 2

    /// Totals flag, keys, flags, time to open, buttons, then counts, then ``rateColumns`` for each rate,
    /// how many units pressed any button, and how many were opened how soon.
    private static var columns: String {
        var columns = [
            "is_total", "app", "campaign_id", "one", "two", "flag_names", "p50", "p90", "p99",
            "buttons",
        ]
        columns += ReportCount.allCases.map { "\($0.rawValue)::bigint" }
        for rate in ReportRate.allCases {
            let name = rate.rawValue
            columns += ["\(name)_numerator::bigint", "\(name)_denominator::bigint"]
        }
        columns += ["loud_actions::bigint", "opened"]
        return columns.joined(separator: ", ")
    }

    private static var selection: String { "\nSELECT \(columns)\nFROM result\n" }

    private static func order(_ options: ReportOptions) -> String {
        let others = options.by.filter { $0 != .campaign }
        func key(_ dimension: ReportDimension) -> String? {
            dimension == .campaign
                ? "campaign_id" : others.firstIndex(of: dimension).map { $0 == 0 ? "one" : "two" }
        }
        func rising(_ column: String) -> String { "\(column) COLLATE \"C\" NULLS LAST" }
        var terms = ["is_total DESC"]
        switch options.sort {
        case .count(let count): terms.append("\(count.rawValue) DESC NULLS LAST")
        case .rate(let rate): terms.append("\(rate.rawValue) DESC NULLS LAST")
        case .dimension(let dimension): terms += [key(dimension)].compactMap { $0 }.map(rising)
        case .app: break
        case nil where options.by.contains(where: \.isTime):
            terms += options.by.compactMap(key).map(rising)
        case nil: terms.append("delivered DESC")
        }
        terms += ["app", "campaign_id", "one", "two"].map(rising)
        return terms.joined(separator: ", ")
    }
}
