/// What vendors call the apps.
extension CommandSpec {
    static let app = CommandSpec(
        "app", "vendors' ids of apps: make, list and remove aliases",
        details: [
            "The SDK of another vendor names the app by an id of that vendor. An alias says which "
                + "app of ours that is; its requests come with a key of the same app."
        ],
        commands: [
            CommandSpec(
                "alias", "make a vendor's id an alias of an app",
                details: ["Daemons know it within 5 s. An id is an alias of one app only."],
                options: store,
                operand: OperandSpec(
                    "APP VENDOR_ID", .text, count: 2...2, "the app, then the vendor's id of it"),
                examples: ["tapline app alias shop 5f1c0c9e-vibes"]),
            CommandSpec(
                "aliases", "list the aliases: id, app, created",
                options: [
                    .value("app", "APP", "only aliases of this app"), format(["table", "json"]),
                ] + store),
            CommandSpec(
                "unalias", "remove aliases; daemons forget them within 5 s",
                options: store,
                operand: OperandSpec("VENDOR_ID", .text, count: 1...1000, "the vendor's id")),
        ])
}
