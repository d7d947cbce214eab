/// What vendors call the apps.
extension CommandSpec {
    static let app = CommandSpec(
        "app", "vendors' ids of apps: make, list and remove aliases",
        details: [
            "The SDK of another vendor names the app by an id of that vendor. An alias says which "
                + "app of ours that is. Requests need a key of the same app all the same, but for "
                + "aliases that are made with --without-key."
        ],
        commands: [
            CommandSpec(
                "alias", "make a vendor's id an alias of an app",
                details: [
                    "Daemons know it within 5 s. An id is an alias of one app only.",
                    "The SDKs of Pushwoosh and NotiPilot can send no key. With --without-key the "
                        + "id does instead of one there: whoever knows it can report events of the "
                        + "app, and it is in every copy of it. The same command without it takes "
                        + "that back.",
                ],
                options: [.flag("without-key", "let calls in that name the id and have no key")]
                    + store,
                operand: OperandSpec(
                    "APP VENDOR_ID", .text, count: 2...2, "the app, then the vendor's id of it"),
                examples: [
                    "tapline app alias shop 5f1c0c9e-vibes",
                    "tapline app alias --without-key shop 8A3E5-4B1D0",
                ]),
            CommandSpec(
                "aliases", "list the aliases: id, app, whether calls need no key, created",
                options: [
                    .value("app", "APP", "only aliases of this app"), format(["table", "json"]),
                ] + store),
            CommandSpec(
                "unalias", "remove aliases; daemons forget them within 5 s",
                options: store,
                operand: OperandSpec("VENDOR_ID", .text, count: 1...1000, "the vendor's id")),
        ])
}
