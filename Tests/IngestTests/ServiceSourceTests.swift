import Glibc
import HTTPServer
import HTTPTestClient
import Ingest
import Platform
import Spool
import Testing

/// Calls of sources: who may send them without a key, and what the server itself refuses of them.
@Suite struct ServiceSourceTests {
    /// A call without a key, whole or its beginning.
    static func keyless(_ body: String, length: Int? = nil) -> String {
        "POST /api/v1/register-device HTTP/1.1\r\nHost: t\r\n"
            + "Content-Length: \(length ?? body.utf8.count)\r\n\r\n" + body
    }

    static func device(_ app: String) -> String { #"{"app_id":"\#(app)","device_uid":"d"}"# }

    @Test func bodiesWithoutAKeyTakeNothingFromThoseWithOne() throws {
        let limit = 16_000
        let fixture = try ServiceFixture { $0.inFlightBytesMax = limit }
        let holder = try fixture.client()
        holder.send(Self.keyless(String(repeating: " ", count: 990), length: 1000))
        while fixture.metric("tapline_in_flight_bytes") != "990" { sched_yield() }

        let other = try fixture.client()
        other.send(Self.keyless(Self.device("open")))
        let refused = try other.answer()
        #expect(refused.status == 503)
        #expect(refused.body.contains("\"code\":\"too_much_in_flight\""), "\(refused.body)")
        #expect(refused.body.contains("\"limit\":1000"), "\(refused.body)")
        try ServiceTests.expectRetry(refused)
        // All of the limit is left.
        #expect(try fixture.post(String(repeating: " ", count: limit)).status == 200)

        holder.close()
        while fixture.metric("tapline_in_flight_bytes") != "0" { sched_yield() }
        other.send(Self.keyless(Self.device("open")))
        #expect(try other.answer().status == 200)
        // What can never fit is not to be tried again.
        other.send(Self.keyless(String(repeating: " ", count: 1001)))
        #expect(try other.answer().status == 413)
        #expect(fixture.metric("tapline_in_flight_bytes") == "0")
    }

    @Test(arguments: [("open", 200), ("keyed", 401), ("nobody", 403)])
    func onlyAnOpenAliasDoesInsteadOfAKey(alias: String, status: Int) throws {
        let fixture = try ServiceFixture()
        let client = try fixture.client()
        client.send(Self.keyless(Self.device(alias)))
        let answer = try client.answer()
        #expect(answer.status == status, "\(answer.body)")
        let keyed = try fixture.post(Self.device(alias), target: "/api/v1/register-device")
        #expect(keyed.status == (alias == "nobody" ? 404 : 200), "\(keyed.body)")
    }

    // MARK: What the server refuses by itself

    @Test func aLengthOverTheLimitIsRefusedAsTheSourceReadsIt() throws {
        let fixture = try ServiceFixture()
        func refused(_ target: String) throws -> String {
            let client = try fixture.client()
            client.send(
                "POST \(target) HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                    + "Content-Length: 99999999\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.status == 413)
            return answer.body
        }
        #expect(try refused("/api/push/event").hasPrefix("{\"metadata\":{\"error\":true,"))
        #expect(try refused("/json/1.3/pushStat").hasPrefix("{\"status_code\":413,"))
        #expect(try refused("/v1/events").hasPrefix("{\"error\":{\"code\":\"body_too_large\","))
    }

    @Test func whatTheEndOfTheDaemonCutsOffIsRefusedAsTheSourceReadsIt() throws {
        let state = Sync.Monitor((isOpen: false, syncs: 0))
        var options = SpoolOptions()
        options.storage.sync = { (file) throws(SystemError) in
            state.withLock { $0.syncs += 1 }
            state.broadcast()
            _ = state.wait(until: Clock.deadline(inMilliseconds: 20_000)) {
                $0.isOpen ? true : nil
            }
            try file.sync()
        }
        let fixture = try ServiceFixture(options: options)
        let client = try fixture.client()
        client.send(
            ServiceFixture.request(
                Array(#"{"events":[{"uuid":"u","type":"launch"}]}"#.utf8),
                target: "/mobile_apps/shop/devices/d/events"))
        _ = state.wait(until: Clock.deadline(inMilliseconds: 20_000)) { $0.syncs > 0 ? true : nil }
        fixture.service.startDraining()
        fixture.server.stop(drainSeconds: 0)
        let answer = try client.answer()
        // Its queue gives up what is answered 503.
        #expect(answer.status == 500)
        #expect(answer.body.contains("\"code\":\"stopping\""), "\(answer.body)")
        try ServiceTests.expectRetry(answer)
        state.withLock { $0.isOpen = true }
        state.broadcast()
    }
}
