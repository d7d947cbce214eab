import Foundation
import Testing

extension SystemTests {
    /// Keys: who may do what, from when and until when.
    @Suite struct KeyTests {
        @Test func bearerAndBasicCarryTheSameKey() throws {
            let app = try Shared.app()
            let basic = Data("\(app.key):".utf8).base64EncodedString()
            for header in ["Bearer \(app.key)", "bearer \(app.key)", "Basic \(basic)"] {
                let request = Request.events(App.click("m"), key: nil)
                #expect(try app.daemon.send(request.with("Authorization", header)).status == 200)
            }
            #expect(try app.storedCount() == 1)
        }

        @Test func aKeyOfTheWrongKindIsForbidden() throws {
            let app = try Shared.app()
            let reader = try app.daemon.key(app.name, role: "read")
            let request = Request.events(App.click("m"), key: reader)
            try StatusTests.expectRefusal(try app.daemon.send(request), 403)
            #expect(try app.storedCount() == 0)
        }

        @Test func aKeyServesItsOwnAppOnly() throws {
            let first = try Shared.app()
            let second = try Shared.app()
            try first.store([App.click("m")])
            try second.store([App.click("m", #","app":"\#(first.name)""#)])
            #expect(try first.count() == 1)
            #expect(try second.count() == 1)
        }

        @Test func aNewKeyWorksAtOnceAndARevokedOneStopsWithin5Seconds() throws {
            let app = try Shared.app()
            #expect(try app.post(App.click("m")).status == 200)
            let revoked = try Tapline.run(["key", "revoke", app.key] + app.daemon.store)
            #expect(revoked.isSuccess, "\(revoked)")
            let answer = try until("the key is refused", seconds: 5) {
                let answer = try app.post(App.click("m"))
                return answer.status == 200 ? nil : answer
            }
            try StatusTests.expectRefusal(answer, 403)
        }

        /// Clients that send events with one key until it is refused, and then with the next one.
        private final class Clients: @unchecked Sendable {
            private let app: App
            private let next: String
            private let lock = NSLock()
            private var names: Set<String> = []
            private var others: [String] = []
            private let done = DispatchSemaphore(value: 0)
            private var running = 0

            /// What was acknowledged, and what is wrong.
            var taken: Set<String> { lock.withLock { names } }
            var faults: [String] { lock.withLock { others } }

            init(_ app: App, next: String) { (self.app, self.next) = (app, next) }

            /// Sends until 50 requests after the change have had the answer that is due.
            func start(_ key: String, _ client: Int, isKnown: Bool) {
                running += 1
                Thread.detachNewThread { [self] in
                    do {
                        try run(key, client, isKnown)
                    } catch {
                        lock.withLock { others.append("\(client): \(error)") }
                    }
                    done.signal()
                }
            }

            func wait() {
                for _ in 0..<running where done.wait(timeout: .now() + 60) == .timedOut {
                    lock.withLock { others.append("a client has not ended in 60 s") }
                }
            }

            private func run(_ first: String, _ client: Int, _ isKnown: Bool) throws {
                var (key, number, after) = (first, 0, 0)
                while after < 50 {
                    let name = "c\(client)-\(number)"
                    let request = Request.events(App.click(name), key: key)
                    switch (try app.daemon.send(request).status, isKnown) {
                    case (401, false): after += 1
                    case (200, true):
                        lock.withLock { _ = names.insert(name) }
                        number += 1
                        if key == next { after += 1 }
                    // What was refused is sent again with the next key.
                    case (403, true) where key != next: key = next
                    case (let status, _): throw Failure("\(name): \(status)", isFinal: true)
                    }
                }
            }
        }

        @Test func aKeyIsReplacedUnderLoadAndNoAcknowledgedEventIsLost() throws {
            // Each request comes on a connection of its own.
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo,
                settings: ["http.address_connections_per_second_max": "0"]
            ).start()
            let app = try App(daemon)
            let clients = Clients(app, next: try daemon.key(app.name))
            for client in 0..<4 { clients.start(app.key, client, isKnown: true) }
            clients.start("nobody", 4, isKnown: false)
            try until("events come: \(clients.faults)") { clients.taken.count > 100 ? true : nil }
            let revoked = try Tapline.run(["key", "revoke", app.key] + daemon.store)
            #expect(revoked.isSuccess, "\(revoked)")
            clients.wait()
            #expect(clients.faults.isEmpty, "\(clients.faults)")
            try daemon.waitUntilLoaded()
            let stored = try app.stored("message_uid").compactMap { $0[0] }
            #expect(stored.count == clients.taken.count && Set(stored) == clients.taken)
            let books = try daemon.check().books
            #expect(books["balanced"] == .bool(true), "\(books)")
            #expect(try daemon.stop() == .code(0))
        }

        @Test func keysAreListedButNeverShown() throws {
            let app = try Shared.app()
            let arguments = ["key", "list", "--app", app.name, "--format", "json"]
            let outcome = try Tapline.run(arguments + app.daemon.store)
            #expect(outcome.isSuccess && outcome.output.contains(app.name))
            #expect(!outcome.output.contains(app.key))
            let files = try Tapline.tool(
                ["sh", "-c", "grep -rl '\(app.key)' '\(app.daemon.directory)' || true"])
            #expect(files.isEmpty, "the key is on disk: \(files)")
        }
    }
}
