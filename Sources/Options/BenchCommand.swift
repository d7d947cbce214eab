extension CommandSpec {
    /// The load generator and its check.
    static let bench = CommandSpec(
        "bench", "load generator with an oracle: measures, and proves that nothing is lost",
        details: [
            "Sends events that follow from a seed, and logs each acknowledgement durably before "
                + "it counts. While the daemon is away it tries again. Prints rates and "
                + "latencies. Exits 1 when an event was not acknowledged.",
            "With --verify it waits up to 60 s for the spool to be loaded, then holds the "
                + "database against the log: every acknowledged event is there exactly once "
                + "with its content, the books balance, and the report counts what was sent. "
                + "Exits 1 when a law is broken, and names the events.",
        ],
        options: [
            .value(
                "url", "URL", "where the daemon is; given more than once, bodies are split",
                default: "$TAPLINE_URL, else http://127.0.0.1:8080", repeats: true),
            .value("key", "KEY", "the app's ingest key", default: "$TAPLINE_KEY"),
            .value(
                "log", "FILE", .file, "log acknowledgements in this new file; what to verify"),
            .value(
                "events", "N", .number(1...10_000_000_000), "how many events", default: "100000"),
            .value("batch", "N", .number(1...1_000_000), "events of a body", default: "500"),
            .value(
                "connections", "N", .number(1...4096), "bodies sent at the same time",
                default: "4"),
            .value("rate", "N", .number(1...100_000_000), "at most so many events a second"),
            .value("seed", "N", .number(0...Int.max), "chooses the events", default: "random"),
            .value(
                "resend", "PERCENT", .number(0...100),
                "send so many acknowledged bodies again", default: "0"),
            .flag("shuffle", "send the events in a random order"),
            .value(
                "delay", "DURATION", .duration,
                "events happened in so long before the run", default: "1min"),
            .value(
                "storm", "N", .number(0...4096),
                "further clients that resend without pause and ignore Retry-After",
                default: "0"),
            .value(
                "retry-for", "DURATION", .duration, "give a body up after this long",
                default: "10min"),
            .flag("verify", "check the log against the database instead of sending"),
            format(["table", "json"]),
        ] + store,
        examples: [
            "tapline bench --key \"$KEY\" --events 1000000 --log run.log",
            "tapline bench --verify --log run.log --data-dir ./data",
        ])
}
