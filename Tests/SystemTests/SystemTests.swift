import Foundation
import Testing

/// The product as a whole: the real binary, a real PostgreSQL, real faults.
///
/// One test at a time, as they look at memory and at what is lost under load; `make test` runs three parts
/// of them, and the tests of modules, side by side.
@Suite(.serialized, .deadline) struct SystemTests {}

/// One daemon on its embedded database for all tests that only talk to it.
enum Shared {
    static let result = Result { () -> Daemon in
        // Small batches, for most tests wait until their events are stored.
        let daemon = try Daemon(settings: ["load.batch_age_ms": "20"]).start()
        _ = try daemon.sql()
        return daemon
    }
    static var daemon: Daemon { get throws { try result.get() } }

    /// A new app with its ingest key on the shared daemon.
    static func app() throws -> App { try App(daemon) }
}

/// An app of a test's own, so that it finds only its own events.
struct App {
    let daemon: Daemon
    let name: String
    let key: String

    init(_ daemon: Daemon) throws {
        self.daemon = daemon
        name = "app-" + UUID().uuidString.prefix(8).lowercased()
        key = try daemon.key(name)
    }

    /// Posts a body as NDJSON.
    func post(_ body: some Collection<UInt8>, query: String = "") throws -> Answer {
        try daemon.send(.events(Array(body), key: key, query: query))
    }

    func post(_ text: String, query: String = "") throws -> Answer {
        try post(text.utf8, query: query)
    }

    /// Posts lines, waits until they are stored and answers the counts.
    @discardableResult
    func store(_ lines: [String]) throws -> JSON { try daemon.store(lines, key: key) }

    /// Columns of this app's events, in the order of the message ids.
    func stored(_ columns: String) throws -> [[String?]] {
        try daemon.sql().rows(
            "SELECT \(columns) FROM tapline.event WHERE app = '\(name)' "
                + "ORDER BY message_uid, device_id, key")
    }

    /// How many events are stored.
    func count() throws -> Int {
        try daemon.sql().int("SELECT count(*) FROM tapline.event WHERE app = '\(name)'")
    }

    /// How many events are stored, after all that is durable is loaded.
    func storedCount() throws -> Int {
        try daemon.waitUntilLoaded()
        return try count()
    }

    /// A tap on a message.
    ///
    /// - Parameter more: Further members, after a comma.
    static func click(_ uid: String, _ more: String = "", device: String = "d") -> String {
        #"{"type":"clicked","message_uid":\#(quote(uid)),"device_id":\#(quote(device))\#(more)}"#
    }
}
