/// Commands that remove the content of events, or bring events back.
extension CommandSpec {
    static let erase = CommandSpec(
        "erase", "remove what is known of devices and persons",
        details: [
            "Each event that names one of them keeps what counts are made of, and loses everything "
                + "else: ids, person, properties. Reports stay the same, and sent again it is a "
                + "duplicate. Its conflicts and dead letters are deleted, and stay counted. What "
                + "waits in a spool is made anonymous when it is loaded. Events that come later, "
                + "with new ids, are new.",
            "All events are read, as there is no index on devices. Safe beside daemons; when it was "
                + "interrupted, run it again.",
        ],
        options: [
            .value("device", "DEVICE", "device_id of a device", repeats: true),
            .value("person", "PERSON", "person_id of a person", repeats: true),
            .value("app", "APP", "only in this app"), format(["table", "json"]),
        ] + store,
        examples: [
            "tapline erase --device 8f2c1d --device 77ab01", "tapline erase --person p-1031",
        ])

    static let retention = CommandSpec(
        "retention", "remove the content of events that are old",
        details: [
            "Events received more than so many days ago keep what counts are made of, and lose "
                + "everything else, as with \"tapline erase\"; the space is given back. Reports "
                + "stay the same, and an event is a duplicate "
                + "for ever. Conflicts and dead letters as old are deleted, and stay counted.",
            "For cron, once a day: it looks only at what has grown old since. Safe beside daemons; "
                + "when it was interrupted, run it again.",
        ],
        options: [
            .value(
                "keep", "DAYS", .number(0...36_500), "how many days of content to keep",
                required: true),
            format(["table", "json"]),
        ] + store,
        examples: ["tapline retention --keep 90"])

    static let replay = CommandSpec(
        "replay", "load what the spool still holds of what was loaded",
        details: [
            "For a database that has lost events: what is stored is a duplicate, what is missing "
                + "is stored. Loaded segments are kept for spool.keep. Each line counts as received "
                + "once more, but for those whose rows were lost. Then run \"tapline rebuild\".",
            "Beside its daemon or without one. What was not loaded yet, by what the database says, "
                + "is left to the daemon.",
        ],
        options: [
            .value(
                "from", "SEGMENT", .number(1...Int.max), "the segment to begin with",
                default: "the oldest that is kept"),
            format(["table", "json"]),
        ] + store,
        examples: ["tapline replay", "tapline replay --from 42"])
}
