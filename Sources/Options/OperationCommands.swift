/// Commands that look at single events, for whoever runs the daemon.
extension CommandSpec {
    static let top = CommandSpec(
        "top", "live ingestion metrics in the terminal",
        details: [
            "Reads the daemon's /metrics again and again and shows what is received, stored, "
                + "refused and spooled, how fast, and what the daemon costs. On a terminal the "
                + "screen is drawn anew; elsewhere each look is printed below the last.",
            "Ends with Ctrl-C. With --once after one look, which takes one interval; exit code 1 "
                + "if the daemon does not answer then.",
        ],
        options: [
            .value(
                "url", "URL", "where the daemon is",
                default: "$TAPLINE_URL, else http://127.0.0.1:8080"),
            .value("interval", "DURATION", .duration, "between two looks", default: "1s"),
            .flag("once", "look once, and exit"),
            format(["table", "json"]),
        ],
        examples: ["tapline top", "tapline top --once --format json"])

    static let tail = CommandSpec(
        "tail", "live events of an app",
        details: [
            "Shows each event of the key's app as it becomes durable: repeats too, before the database "
                + "has told them apart. Ends with Ctrl-C, or after --count events; a daemon that goes "
                + "away is waited for. Whoever reads too slowly is told how many were left out."
        ],
        options: [
            .value(
                "url", "URL", "where the daemon is",
                default: "$TAPLINE_URL, else http://127.0.0.1:8080"),
            .value("key", "KEY", "an admin key of the app", default: "$TAPLINE_KEY"),
            .value("type", "TYPE", "only events of this type"),
            .value("campaign", "CAMPAIGN", "only events that name this campaign"),
            .value("device", "DEVICE", "only events of this device"),
            .value("message", "UID", "only events of this message"),
            .value("count", "N", .number(1...1_000_000_000), "end after so many events"),
            format(["table", "ndjson"]),
        ],
        examples: [
            "tapline tail --type clicked", "tapline tail --device d-1 --format ndjson",
        ])

    static let explain = CommandSpec(
        "explain", "the whole life of one event or message",
        details: [
            "Shows what came under an id: each event with its line, request, spool record, "
                + "verdict, load transaction and row; conflicts and dead letters with their "
                + "bodies; and for a message each unit with what it counts as in reports.",
            "The id is a message_uid or inbox_message_uid, else an event_uid, for which all "
                + "events are read. Exits 1 when nothing of it is known: then it never came, or "
                + "was rejected, which leaves no trace but a count.",
        ],
        options: [
            .value("app", "APP", "only events of this app"), format(["table", "json"]),
        ] + store,
        operand: OperandSpec("UID", .text, count: 1...1, "message_uid, inbox id or event_uid"),
        examples: ["tapline explain 0b61a8ae-7a6e-4f0e-8d8c-3f4a9a3ad0b1"])

    static let dlq = CommandSpec(
        "dlq", "list, show, replay and purge dead letters",
        details: [
            "A dead letter is an event that PostgreSQL refused, by a constraint or a trigger of "
                + "yours for example. It is kept with the reason until it is replayed or purged."
        ],
        commands: [
            CommandSpec(
                "list", "list dead letters: id, when, app, SQLSTATE, reason, the line's start",
                options: [
                    .value("app", "APP", "only those of this app"), dlqFormat,
                ] + store),
            CommandSpec(
                "show", "show all of a dead letter, with its line",
                options: [dlqFormat] + store,
                operand: OperandSpec("ID", letterID, count: 1...1, "its number in the list")),
            CommandSpec(
                "replay", "load dead letters once more, and say what became of each",
                details: [
                    "Each is stored, a duplicate or a conflict, or a dead letter again with the "
                        + "new reason. Exactly once, also while daemons load and when it is "
                        + "killed. Exits 1 if any stays a dead letter or is not there."
                ],
                options: [.flag("all", "all of them"), dlqFormat] + store,
                operand: OperandSpec("ID", letterID, count: 0...100_000, "which ones"),
                examples: ["tapline dlq replay 17 18", "tapline dlq replay --all"]),
            CommandSpec(
                "purge", "remove dead letters for good; they stay counted",
                options: [
                    .flag("all", "all of them"),
                    .value(
                        "older-than", "DURATION", .duration, "those refused longer ago, as 30d"),
                    .flag("yes", "do it; without it only their number is said"),
                ] + store,
                operand: OperandSpec("ID", letterID, count: 0...100_000, "which ones"),
                examples: ["tapline dlq purge --older-than 90d --yes"]),
        ])

    private static let letterID = ValueKind.number(1...Int.max)
    private static let dlqFormat = format(["table", "json", "ndjson"])
}
