import Foundation

/// An app that an SDK of another vendor names by an id of that vendor.
struct SourceApp {
    let app: App
    /// The vendor's id, which the daemon knows, and which does instead of a key.
    let alias: String

    init(_ daemon: Daemon) throws {
        app = try App(daemon)
        alias = "vendor/\(app.name) é"
        try Self.makeAlias(app, alias)
        try until("the alias is known", seconds: 10) {
            // Of a message that is not named: it is read, and nothing is stored.
            let body = "{\"request\":{\"application\":\(quote(alias))}}"
            let answer = try daemon.send(
                Request(target: "/json/1.3/pushStat", body: Array(body.utf8)))
            return answer.status == 200 ? true : nil
        }
    }

    static func makeAlias(_ app: App, _ alias: String, isOpen: Bool = true) throws {
        let flags = isOpen ? ["--without-key"] : []
        let outcome = try Tapline.run(
            ["app", "alias"] + flags + [app.name, alias] + app.daemon.store)
        guard outcome.isSuccess else { throw Failure("app alias: \(outcome)") }
    }

    /// The alias as a part of a path.
    var pathPart: String {
        alias.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? alias
    }

    /// A request of an SDK.
    ///
    /// - Parameter key: What comes before the key: a scheme, or `X_KEY` for that header; nil for none.
    func request(
        _ target: String, _ body: String, key: String? = "Bearer", method: String = "POST",
        headers: [(String, String)] = []
    ) -> Request {
        var headers = headers + [("Content-Type", "application/json; charset=UTF-8")]
        switch key {
        case "X_KEY": headers.append(("X_KEY", app.key))
        case let scheme?: headers.append(("Authorization", "\(scheme) \(app.key)"))
        case nil: break
        }
        return Request(method: method, target: target, headers: headers, body: Array(body.utf8))
    }

    /// The app's events, each as
    /// `TYPE MESSAGE DEVICE EVENT CAMPAIGN PLATFORM`, `-` for none, and what else there is. The event ids
    /// of calls about devices are made by the daemon, and left out.
    func stored() throws -> Set<String> {
        try app.daemon.waitUntilLoaded()
        let rows = try app.daemon.sql().rows(
            """
            SELECT concat_ws(' ', CASE WHEN e.type = 0 THEN e.type_raw ELSE t.name END,
                coalesce(message_uid, '-'), coalesce(device_id, '-'),
                CASE WHEN type_raw ~ '^device_' THEN '-' ELSE coalesce(event_uid, '-') END,
                coalesce(campaign_id, '-'), coalesce(platform, '-'), 'button=' || action_id,
                'inbox=' || inbox_message_uid, 'opens=' || opens_app, 'test=' || is_test,
                'at=' || extract(epoch FROM occurred_at)::bigint)
            FROM tapline.event e JOIN tapline.event_type t ON t.code = e.type
            WHERE e.app = '\(app.name)'
            """)
        return Set(rows.compactMap { $0[0] })
    }
}

/// One request of a source, its answer, and the events that are stored for it and were not before.
struct SourceCall {
    let what: String
    let request: Request
    let status: Int
    /// The whole answer; nil where only the status counts.
    let answer: String?
    let stored: [String]

    init(
        _ what: String, _ request: Request, _ status: Int = 200, _ answer: String? = nil,
        stored: [String] = []
    ) {
        self.what = what
        self.request = request
        self.status = status
        self.answer = answer
        self.stored = stored
    }
}
