/// The version that `--version` and the manual page show.
package let taplineVersion = "0.1.0"

extension CommandSpec {
    private static let dataDirectory = OptionSpec.value(
        "data-dir", "DIR", .directory, "data directory; finds the embedded database too",
        default: "$TAPLINE_DATA_DIR, else /var/lib/tapline or ~/.local/share/tapline")
    private static let database = OptionSpec.value(
        "database", "CONNINFO", "PostgreSQL to use instead of the embedded one",
        default: "$DATABASE_URL, PG..., else embedded")
    private static let config = OptionSpec.value(
        "config", "FILE", .file, "file of settings", default: "$TAPLINE_CONFIG")
    private static let settings = OptionSpec.value(
        "set", "KEY=VALUE", "any setting, as in the file", repeats: true)
    static let store = [dataDirectory, database, config]

    static func format(_ words: [String]) -> OptionSpec {
        .value(
            "format", "FORMAT", .choice(words), "output format: \(listed(words))",
            default: words[0])
    }

    /// Every command of this version.
    package static let tapline = CommandSpec(
        "tapline", "push engagement analytics that never lose or double-count a tap",
        details: [
            "Takes tracking events and notification status updates as NDJSON over HTTP, makes "
                + "them durable before it answers, counts each message once, and reports "
                + "click-through per campaign.",
            "Try it: \"tapline demo\" runs all of it on sample data and prints a report.",
        ],
        commands: [
            serve, migrate, key, app, device, campaign, category, report, compare, send, importing,
            top, tail, check, rebuild, explain, dlq, erase, retention, replay, bench, demo,
            completion, help,
        ])

    private static let serve = CommandSpec(
        "serve", "run the daemon: ingest, spool, load, metrics",
        details: [
            "Settings come from flags, then the environment (TAPLINE_ and the key in capitals, "
                + "for example TAPLINE_SPOOL_BYTES_MAX), then the file. Without a database it "
                + "runs its own private PostgreSQL in the data directory.",
            "SIGTERM drains and exits 0. SIGHUP reads the file again; a broken one is refused "
                + "and the old settings stay.",
        ],
        options: [
            .value(
                "listen", "ADDR:PORT", "address and port of HTTP", default: "127.0.0.1:8080")
        ] + store + [
            settings,
            .flag("check-config", "read the settings, say what is wrong, and exit"),
            .flag("print-config", "print every setting and where it came from, and exit"),
        ],
        examples: [
            "tapline serve --data-dir ./data",
            "tapline serve --config /etc/tapline/tapline.conf --set log.level=debug",
        ])

    private static let migrate = CommandSpec(
        "migrate", "create or upgrade the schema",
        details: ["\"tapline serve\" does this when it starts; twice is harmless."],
        options: store)

    private static let key = CommandSpec(
        "key", "create, list and revoke keys",
        commands: [
            CommandSpec(
                "create", "make a key and print it, alone on one line",
                details: ["Only a hash is kept: the key cannot be shown again."],
                options: [
                    .value("app", "APP", "the app that the key belongs to", required: true),
                    .value(
                        "role", "ROLE", .choice(["ingest", "read", "admin"]),
                        "what it may do: ingest, read or admin", default: "ingest"),
                ] + store,
                examples: ["KEY=$(tapline key create --app shop)"]),
            CommandSpec(
                "list", "list the keys: id, app, role, created, revoked",
                options: [
                    .value("app", "APP", "only keys of this app"), format(["table", "json"]),
                ] + store),
            CommandSpec(
                "revoke", "revoke keys; daemons refuse them within 5 s",
                options: store,
                operand: OperandSpec("KEY", .text, count: 1...1000, "the key or its id")),
        ])

    private static let report = CommandSpec(
        "report", "click-through and engagement per campaign",
        details: [
            "A time is a date (midnight in --tz), RFC 3339, an epoch, or 7d or 24h ago; no "
                + "period means everything. A campaign counts the messages first seen in the "
                + "period with all that came of them."
        ],
        options: [
            .value("from", "TIME", "messages first seen at or after this time"),
            .value("to", "TIME", "messages first seen before this time"),
            .value("tz", "ZONE", "IANA time zone of dates and days", default: "UTC"),
            .value("app", "APP", "only this app"),
            .value("campaign", "CAMPAIGN", "only this campaign"),
            .value(
                "by", "DIMENSION[,DIMENSION]",
                "rows: one or two of campaign, day, hour, platform, app_version, os_version, "
                    + "locale, country, provider, category, action, push_group, topic, type",
                default: "campaign"),
            .flag("by-activity", "count events in the period, not messages first seen in it"),
            .value(
                "journeys", "WHEN", .choice(["auto", "always", "never"]),
                "influenced, converted and time to open, for which all events are read: auto where "
                    + "there are few", default: "auto"),
            .value(
                "conversion-window", "TIME", "how long after a click a conversion is its",
                default: "24h"),
            .value("as-of", "TIME", "what was known at that time"),
            .value(
                "since", "TIME",
                "only what has changed since the report with this as_of, and how late it came"),
            .flag("include-test", "count test devices too"),
            .value("sort", "NAME", "sort by a count, a rate or a dimension"),
            .value("top", "N", .number(1...1_000_000), "at most so many rows"),
            format(["table", "json", "ndjson", "csv", "html"]),
            .value("output", "FILE", .file, "write here instead of stdout"),
        ] + store,
        examples: [
            "tapline report --from 7d",
            "tapline report --by campaign,platform --format csv --output report.csv",
            "tapline report --from 30d --format html --output report.html",
        ])

    private static let compare = CommandSpec(
        "compare", "two or more campaigns: is the difference real?",
        details: [
            "Compares a rate of each two campaigns: the difference with its interval, how likely it "
                + "is chance, and how many more units would show it. The base is units, messages "
                + "on devices."
        ],
        options: [
            .value(
                "rate", "NAME",
                "which rate; ctr_delivered, or ctr_accepted where receipts are biased"),
            .value("from", "TIME", "messages first seen at or after this time"),
            .value("to", "TIME", "messages first seen before this time"),
            .value("tz", "ZONE", "IANA time zone of dates", default: "UTC"),
            .value("app", "APP", "only this app"),
            .value("as-of", "TIME", "what was known at that time"),
            .flag("include-test", "count test devices too"),
            format(["table", "json"]),
            .value("output", "FILE", .file, "write here instead of stdout"),
        ] + store,
        operand: OperandSpec("CAMPAIGN", .text, count: 2...26, "campaign ids to compare"),
        examples: ["tapline compare spring-sale summer-sale --from 30d"])

    private static let send = CommandSpec(
        "send", "send NDJSON files, with retries and a progress bar",
        details: [
            "Reads .ndjson and .ndjson.gz files, or stdin as -, and posts their lines as gzipped "
                + "bodies. Repeats a body on network errors, 408, 429 and 5xx with growing, "
                + "random pauses, for as long as the server asks; on 413 sends it in halves. "
                + "Sending a file twice is harmless: events are stored once.",
            "Exits 1 when a line was rejected or a body could not be sent, and names the file "
                + "and line.",
        ],
        options: sending(batch: "lines of a body") + [
            format(["table", "json"])
        ],
        operand: OperandSpec(
            "FILE", .file, count: 1...1_000_000, "NDJSON, gzipped or not; - is stdin"),
        examples: [
            "tapline send --key \"$KEY\" events.ndjson.gz",
            "zcat old/*.gz | tapline send --url http://tapline.internal:8080 -",
        ])

    /// The options of commands that send to a daemon.
    static func sending(batch: String) -> [OptionSpec] {
        [
            .value(
                "url", "URL", "where the daemon is",
                default: "$TAPLINE_URL, else http://127.0.0.1:8080"),
            .value("key", "KEY", "the app's ingest key", default: "$TAPLINE_KEY"),
            .value("batch", "N", .number(1...1_000_000), batch, default: "1000"),
            .value(
                "connections", "N", .number(1...256), "bodies sent at the same time",
                default: "4"),
            .value(
                "retry-for", "DURATION", .duration, "give a body up after this long",
                default: "10min"),
        ]
    }

    private static let check = CommandSpec(
        "check", "do the books balance? exit code 1 if not",
        details: [
            "received = stored + duplicate + conflict + rejected + dead_lettered + spooled, "
                + "recounted from the tables and the spool.",
            "Reports are read from sums that each load keeps up to date. With --reports, reports by "
                + "each dimension are made from the events, too, and must be the same. All events "
                + "are read for each of them.",
        ],
        options: [
            .flag("reports", "are reports from sums those from events?"),
            format(["table", "json"]),
        ] + store)

    private static let rebuild = CommandSpec(
        "rebuild", "make the sums that reports are read from anew",
        details: [
            "From all events, in one transaction for which loads wait; daemons go on receiving. "
                + "Needed after somebody has changed events by hand. Reports as of an earlier time "
                + "are read from the events from then on, which takes longer."
        ], options: store, examples: ["tapline rebuild", "tapline check --reports"])

    private static let demo = CommandSpec(
        "demo", "all of it on an embedded database with sample data",
        details: [
            "Starts a daemon and a database, sends more than 200,000 sample events of three "
                + "apps, waits until they are stored, prints the report, and stops everything."
        ],
        options: [
            .value("data-dir", "DIR", .directory, "use and keep this directory"),
            .flag("keep", "keep the temporary directory"),
            .value(
                "print-sample", "APP", .choice(["shop", "news", "games"]),
                "print the sample of an app as NDJSON, and exit", hidden: true),
            .value(
                "sample-anchor", "SECONDS", .number(0...4_000_000_000),
                "the time the sample ends, seconds since 1970", hidden: true),
            .value(
                "sample-percent", "N", .number(1...1000), "size of the sample", hidden: true),
            .flag(
                "sample-order-free", "leave out what arrival order decides", hidden: true),
        ],
        examples: ["tapline demo", "tapline demo --data-dir ./tapline-demo"])

    private static let completion = CommandSpec(
        "completion", "print the completion script of a shell",
        operand: OperandSpec(
            "SHELL", .choice(["bash", "zsh", "fish"]), count: 1...1, "bash, zsh or fish"),
        examples: ["source <(tapline completion bash)"])

    private static let help = CommandSpec(
        "help", "show the help of a command",
        options: [
            .flag("man", "print the manual page", hidden: true),
            .flag("sample-config", "print a sample of the file of settings", hidden: true),
        ],
        operand: OperandSpec("COMMAND", .text, count: 0...2, "the words of the command"))
}
