/// The SQL of the project as text, compiled into the binary: `sql/` is its one home.
package enum Schema {
    /// One migration: applied once, in order of `version`, in its own transaction.
    package struct Migration: Sendable {
        /// Position in the order, from 1; the number that leads the file's name.
        package let version: Int
        /// The file's name without its number and ending.
        package let name: String
        /// The statements.
        package let sql: String
    }

    /// Every migration, in order.
    package static let migrations: [Migration] = [
        Migration(version: 1, name: "initial", sql: text(PackageResources._001_initial_sql)),
        Migration(version: 2, name: "units", sql: text(PackageResources._002_units_sql)),
        Migration(version: 3, name: "cells", sql: text(PackageResources._003_cells_sql)),
        Migration(version: 4, name: "news", sql: text(PackageResources._004_news_sql)),
        Migration(version: 5, name: "reports", sql: text(PackageResources._005_reports_sql)),
        Migration(version: 6, name: "sums", sql: text(PackageResources._006_sums_sql)),
        Migration(version: 7, name: "removed", sql: text(PackageResources._007_removed_sql)),
        Migration(version: 8, name: "privacy", sql: text(PackageResources._008_privacy_sql)),
        Migration(version: 9, name: "sources", sql: text(PackageResources._009_sources_sql)),
        Migration(version: 10, name: "devices", sql: text(PackageResources._010_devices_sql)),
        Migration(version: 11, name: "campaigns", sql: text(PackageResources._011_campaigns_sql)),
        Migration(version: 12, name: "pieces", sql: text(PackageResources._012_pieces_sql)),
        Migration(version: 13, name: "hours", sql: text(PackageResources._013_hours_sql)),
        Migration(version: 14, name: "special", sql: text(PackageResources._014_special_sql)),
        Migration(version: 15, name: "sends", sql: text(PackageResources._015_sends_sql)),
        Migration(version: 16, name: "closings", sql: text(PackageResources._016_closings_sql)),
        Migration(version: 17, name: "parallel", sql: text(PackageResources._017_parallel_sql)),
        Migration(
            version: 18, name: "special campaigns",
            sql: text(PackageResources._018_special_campaigns_sql)),
        Migration(
            version: 19, name: "old_versions",
            sql: text(PackageResources._019_old_versions_sql)),
        Migration(
            version: 20, name: "inbox_segments",
            sql: text(PackageResources._020_inbox_segments_sql)),
        Migration(
            version: 21, name: "news_pieces",
            sql: text(PackageResources._021_news_pieces_sql)),
    ]

    /// A part of a report's statement: common table expressions, with placeholders in `<>`.
    package enum ReportPart: Sendable {
        /// The events, and what is looked at of each.
        case source, columns
        /// More of them, for journeys of units in cells.
        case outside, effects
        /// The same for what happened in a period.
        case active
        /// What the events say of each unit.
        case exact
        /// What else is to be known of the messages of special units.
        case sibling
        /// Units in cells.
        case plain
        /// Pieces of units in cells.
        case types, actions
        /// The first of many rows.
        case top
        /// What devices did around their messages, and where that names none of them.
        case journey, life
        /// Units by what is of an event.
        case piece
        /// Counts and rates of units.
        case cells
        /// The sums of ``cells``.
        case sums
        /// Time to open, and buttons.
        case opening
        /// The function around it, made by migrations.
        case function
        /// The views over that.
        case views
    }

    /// The text of `sql/report/`.
    package static func report(_ part: ReportPart) -> String {
        switch part {
        case .source: text(PackageResources.source_sql)
        case .columns: text(PackageResources.columns_sql)
        case .outside: text(PackageResources.outside_sql)
        case .effects: text(PackageResources.effects_sql)
        case .active: text(PackageResources.active_sql)
        case .life: text(PackageResources.life_sql)
        case .exact: text(PackageResources.exact_sql)
        case .sibling: text(PackageResources.sibling_sql)
        case .plain: text(PackageResources.plain_sql)
        case .types: text(PackageResources.types_sql)
        case .actions: text(PackageResources.actions_sql)
        case .top: text(PackageResources.top_sql)
        case .journey: text(PackageResources.journey_sql)
        case .piece: text(PackageResources.piece_sql)
        case .cells: text(PackageResources.cells_sql)
        case .sums: text(PackageResources.sums_sql)
        case .opening: text(PackageResources.opening_sql)
        case .function: text(PackageResources.function_sql)
        case .views: text(PackageResources.views_sql)
        }
    }

    /// What is made anew after the migrations wherever its text is of another version of the program:
    /// ``cellFunctions`` and ``reportFunction``.
    package static let functions = cellFunctions + ";\n" + reportFunction

    /// The functions that make cells; and where cells are of another version of these, they are made anew.
    package static let cellFunctions =
        [
            text(PackageResources.merge_sql), text(PackageResources.rebuild_sql),
            """
            DO $$
            BEGIN
                IF EXISTS (SELECT FROM tapline.turn WHERE cells_format < <format>) THEN
                    PERFORM tapline.rebuild_cells();
                END IF;
            END
            $$
            """,
        ].joined(separator: ";\n").filled([
            "dimensions": cellDimensions.joined(separator: ", "), "format": "1",
            "plain states": "\(plainStates)",
        ])

    /// The columns of cells that are of devices, and those that are of what was shown and pressed.
    static let deviceDimensions = [
        "platform", "app_version", "os_version", "locale", "country", "provider",
    ]
    static let cellDimensions =
        deviceDimensions + ["action_id", "category_id", "push_group", "topic"]

    /// The states of a cell without the type of the events that its clicks and late events are.
    static let plainStates = (1 << 26) - 1
    /// Of these the bits that `tapline.event_states` knows.
    package static let eventStates = plainStates & ~(3 << 17)

    /// The statement that removes the content of events of a segment: `sql/privacy/anonymise.sql`.
    ///
    /// - Parameter which: A condition on events `e`; its parameters are the statement's.
    package static func anonymise(segment: Int, which: String) -> String {
        text(PackageResources.anonymise_sql).filled(["segment": "\(segment)", "which": which])
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
