/// Devices and categories of notifications.
extension CommandSpec {
    static let device = CommandSpec(
        "device", "registered devices, and marks of test devices",
        details: [
            "Registration calls of SDKs, and device_register, device_update and device_unregister "
                + "events, say what a device is. A test device counts in no report unless "
                + "--include-test is given, from the moment it is marked, with all its past."
        ],
        commands: [
            CommandSpec(
                "list", "list registered devices as they are now, the last changed first",
                options: [
                    .value("app", "APP", "only devices of this app"),
                    .value("top", "N", .number(1...1_000_000), "at most so many", default: "100"),
                    format(["table", "json"]),
                ] + store),
            CommandSpec(
                "show", "show what is known of a device now",
                details: ["Exits 1 when it never registered."],
                options: [
                    .value("app", "APP", "only in this app"), format(["table", "json"]),
                ] + store,
                operand: OperandSpec("DEVICE", .text, count: 1...1, "device_id")),
            CommandSpec(
                "apply", "give stored events what was known of their devices only later",
                details: [
                    "An event that does not say its platform, version, locale, country or provider "
                        + "has what was known of its device when it was loaded. This looks again, for "
                        + "registrations that were loaded after it. All events are read; units are "
                        + "counted anew, for which loading waits. Twice is harmless."
                ],
                options: [format(["table", "json"])] + store),
            CommandSpec(
                "mark-test", "mark devices as test devices",
                options: [
                    .value(
                        "app", "APP", "only in this app; else in every app that has a key or alias")
                ] + store,
                operand: OperandSpec("DEVICE", .text, count: 1...1000, "device_id"),
                examples: ["tapline device mark-test --app shop 8f2c1d"]),
            CommandSpec(
                "unmark-test", "take the mark away",
                options: [
                    .value(
                        "app", "APP", "only in this app; else in every app that has a key or alias")
                ] + store,
                operand: OperandSpec("DEVICE", .text, count: 1...1000, "device_id")),
        ])

    static let category = CommandSpec(
        "category", "categories of interactive notifications and their buttons",
        details: [
            "A category has buttons, each with the id that the SDK reports as action_id, a label, and "
                + "whether it opens the app. That decides whether an action counts as a click where "
                + "the event does not say."
        ],
        commands: [
            CommandSpec(
                "import", "add or replace categories, from JSON or CSV",
                details: [
                    "JSON: an array of {\"id\", \"label\", \"buttons\": [{\"id\", \"label\", \"type\", "
                        + "\"startApplication\"}]}. CSV: a line a button, with the columns "
                        + "category_id, category_label, button_id, label, type, start_application. A "
                        + "category that is there is replaced with all its buttons; others stay.",
                    "Where stored events are counted anew, loading waits for it; reports do not. "
                        + "Nothing is imported if anything in the file is wrong.",
                ],
                options: [
                    .value("app", "APP", "the app that has them", required: true),
                    .flag("replace", "remove the app's other categories"),
                ] + store,
                operand: OperandSpec("FILE", .file, count: 1...1, "JSON or CSV; - is stdin"),
                examples: ["tapline category import --app shop categories.json"]),
            CommandSpec(
                "list", "list the categories and their buttons",
                options: [
                    .value("app", "APP", "only of this app"), format(["table", "json"]),
                ] + store),
        ])
}
