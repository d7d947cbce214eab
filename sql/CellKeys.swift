extension Schema {
    /// What rows that are made of cells are by, as far as the statement hangs on it.
    package struct CellKeys: Sendable {
        /// The finest time that rows are by: their `quarter` is a key of it, a number.
        package enum Time: Sendable {
            /// Days since 1970 of the time zone.
            case day
            /// The first quarter of the hour: of the two hours that have one name when clocks go back, each
            /// has its own.
            case hour

            /// The key of the time that a quarter of an hour is in.
            ///
            /// - Parameters:
            ///   - quarter: SQL.
            ///   - isUTC: Whether rows are by UTC; else the statement has ``zone``.
            package func key(of quarter: String, isUTC: Bool) -> String {
                let place = "width_bucket(\(quarter), (SELECT starts FROM zone))"
                let shift = "(SELECT shifts FROM zone)[\(place) + 1]"
                switch (self, isUTC) {
                case (.day, true): return "\(quarter) / 96"
                case (.hour, true): return "\(quarter) - \(quarter) % 4"
                case (.day, false): return "(\(quarter) + \(shift)) / 96"
                case (.hour, false):
                    return "greatest(\(quarter) - (\(quarter) + \(shift)) % 4, "
                        + "(SELECT starts FROM zone)[\(place)])"
                }
            }

            /// A time within what a key `quarter` stands for.
            package var at: String {
                self == .day
                    ? "(date '1970-01-01' + quarter)::timestamp"
                    : "to_timestamp(quarter * 900::float8)"
            }
        }

        let time: Time?
        let hasCampaign: Bool
        let isUTC: Bool
        let hasPeriod: Bool
        /// Order and limit of rows, if the order is of keys alone: SQL.
        let first: String?

        package init(
            time: Time?, hasCampaign: Bool, isUTC: Bool, hasPeriod: Bool, first: String?
        ) {
            self.time = time
            self.hasCampaign = hasCampaign
            self.isUTC = isUTC
            self.hasPeriod = hasPeriod
            self.first = first
        }

        /// A CTE and a comma, or nothing.
        var zone: String { time == nil || isUTC ? "" : Schema.zone }

        /// `quarter` of a cell `e`.
        var ofCell: String { key(of: "e.quarter") }

        /// `quarter` of a unit.
        var ofUnit: String { key(of: Schema.unitQuarter) }

        /// Whether nearly every cell is a row, so that it would be in vain to group them first.
        func areOf(_ table: CellTable) -> Bool { table == .hour && time == .hour && hasCampaign }

        /// CTE `alike`, and a comma, of statements that give its rows.
        ///
        /// - Parameter units: The statements, by the name of the CTE with the units that are not special.
        func alike(of table: CellTable, isPast: Bool, _ units: (String) -> String) -> String {
            guard let first, areOf(table) else { return "alike AS (\(units("plain"))),\n" }
            // The same sums, of a few rows for each campaign.
            let areSummed = !hasPeriod && !isPast
            let sums =
                areSummed
                ? Schema.units("summed_cells", from: .campaign, quarter: "NULL::int", isEach: true)
                    + "entire AS NOT MATERIALIZED (\(units("summed_cells").filled(["quarter": "NULL::int"]))),\n"
                : ""
            return "each AS NOT MATERIALIZED (\(units("plain"))),\n" + sums
                + report(.top).filled([
                    "labels": labels(of: "keys"), "first rows": first,
                    "entire": areSummed ? "entire" : "each",
                ]) + ",\n"
        }

        private func key(of quarter: String) -> String {
            time?.key(of: quarter, isUTC: isUTC) ?? "NULL::int"
        }
    }

    /// The offsets of the session's time zone, as a CTE and a comma.
    static let zone = "zone AS MATERIALIZED (SELECT starts, shifts FROM tapline.zone_shifts()),\n"

    /// The quarter of an hour in which a unit was first seen.
    static let unitQuarter = "floor(extract(epoch FROM first_at) / 900)::int"
}
