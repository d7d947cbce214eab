/// What comes from files of others: tables of events, and names of campaigns.
extension CommandSpec {
    static let campaign = CommandSpec(
        "campaign", "names of campaigns: import and list",
        commands: [
            CommandSpec(
                "import", "import names, variants and audiences of campaigns",
                details: [
                    "Reads CSV with a row of names (separated by commas, semicolons or tabs), or "
                        + "NDJSON: id, and any of name, provider, sent_at, audience, variant, app. "
                        + "Reports show them, those of the past too. A file may be imported again: "
                        + "a column that it has replaces what is known, one that it lacks leaves it.",
                    "A line that is wrong is named and left out, and the exit code is 1.",
                ],
                options: [
                    .value("app", "APP", "the app of campaigns whose line does not say")
                ] + store,
                operand: OperandSpec(
                    "FILE", .file, count: 1...1000, "CSV or NDJSON, gzipped or not; - is stdin"),
                examples: ["tapline campaign import --app shop campaigns.csv"]),
            CommandSpec(
                "list", "list what is known of campaigns beside their events",
                options: [
                    .value("app", "APP", "only campaigns of this app"), format(["table", "json"]),
                ] + store),
        ])

    static let importing = CommandSpec(
        "import", "send the files that platforms export, by a map of their columns",
        details: [
            "Reads tables (RFC 4180, with commas, tabs or what the map says), makes events of their "
                + "rows as the map says, and sends them as \"tapline send\" does. What an event is "
                + "follows from its row, so a file that is imported again adds nothing.",
            "A row that is wrong is named and written with its reason to FILE.rejects, which can be "
                + "put right and imported; the exit code is then 1.",
            "A map is a file of lines as \"message_uid = id\", or the name of one that is there: "
                + "vibes-push-messages.",
        ],
        options: [
            .value("map", "MAP", .file, "the map: a file, or vibes-push-messages", required: true),
            .flag("print-map", "print the map, and exit"),
            .flag("dry-run", "send nothing: print the first events, count all, name bad rows"),
            .value(
                "only", "COLUMN=VALUE",
                "only rows with this value; of several, rows with all of them",
                repeats: true),
            .value(
                "rejects", "FILE", .file, "where refused rows go", default: "FILE.rejects"),
        ] + sending(batch: "events of a body") + [format(["table", "json"])],
        operand: OperandSpec(
            "FILE", .file, count: 0...1_000_000, "a table, gzipped or not; - is stdin"),
        examples: [
            "tapline import --map vibes-push-messages --dry-run PUSHMESSAGES_2026-11-30.TXT",
            "tapline import --map vibes-push-messages --key \"$KEY\" PUSHMESSAGES_*.TXT.gz",
        ])
}
