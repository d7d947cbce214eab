import Foundation
import Testing

extension SystemTests {
    /// Bodies that are far over the limits, or just within them with nothing in them; and a client that
    /// divides what is refused.
    @Suite struct ExtremeBodyTests {
        /// Counts what the daemon needs at the most, from here on.
        private struct Memory {
            let process: ChildProcess
            let before: Int

            init(_ daemon: Daemon) throws {
                process = try #require(daemon.process)
                // Lets the kernel count the most anew.
                try "5".write(
                    toFile: "/proc/\(process.pid)/clear_refs", atomically: false, encoding: .utf8)
                before = process.memory("VmRSS")
            }

            var growth: Int { process.memory("VmHWM") - before }
        }

        private static func daemon() throws -> (Daemon, App) {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo, settings: ["load.batch_age_ms": "5"]
            ).start()
            return (daemon, try App(daemon))
        }

        /// One line of 1 GiB: as it is, in chunks, and as gzip; by clients that send on whatever is answered.
        @Test func aLineOfAGigabyteIsRefusedInBoundedMemory() throws {
            let (daemon, app) = try Self.daemon()
            let memory = try Memory(daemon)
            let mebibyte = [UInt8](repeating: 0x61, count: 1 << 20)
            let bare = Request.events([], key: app.key)
            let head = bare.head.replacing("Content-Length: 0", with: "Content-Length: \(1 << 30)")
            let chunked = bare.head.replacing(
                "Content-Length: 0", with: "Transfer-Encoding: chunked")
            var bomb = Request.events(
                (0..<64).flatMap { _ in gzip([UInt8](repeating: 0x61, count: 16 << 20), level: 1) },
                key: app.key)
            bomb.headers.append(("Content-Encoding", "gzip"))
            let bombBytes = bomb.bytes
            let port = daemon.port
            let answers = Answers()
            DispatchQueue.concurrentPerform(iterations: 12) { number in
                answers.add {
                    let connection = try Connection(port: port)
                    switch number % 3 {
                    case 0:
                        try connection.send(head)
                        _ = connection.sendOver(mebibyte, times: 1024)
                    case 1:
                        try connection.send(chunked)
                        let chunk = Array("100000\r\n".utf8) + mebibyte + [13, 10]
                        if connection.sendOver(chunk, times: 1024) == 1024 {
                            try? connection.send("0\r\n\r\n")
                        }
                    default: try? connection.send(bombBytes)
                    }
                    return try connection.answer()
                }
            }
            #expect(answers.statuses == [Int](repeating: 413, count: 12), "\(answers.bodies)")
            for answer in answers.bodies {
                #expect(answer["error"]["code"] == .string("body_too_large"), "\(answer)")
            }
            // What may be in flight, of which a body has a sixth at most.
            #expect(memory.growth < 64 << 20, "\(memory.growth >> 20) MiB more")
            #expect(try app.store([App.click("after")])["accepted"] == .int(1))
            #expect(try app.count() == 1)
            #expect(try daemon.stop() == .code(0))
        }

        @Test func tenMillionTinyLinesAreCountedInBoundedMemory() throws {
            let (daemon, app) = try Self.daemon()
            let memory = try Memory(daemon)
            let connection = try daemon.connect()
            // At the limit of lines: each is judged, and a few are told.
            let tiny = Request.events(String(repeating: "1\n", count: 10_000), key: app.key).gzipped
            let bytes = tiny.bytes
            for _ in 0..<1_000 {
                try connection.send(bytes)
                let answer = try connection.answer()
                let counts = #"{"received":10000,"accepted":0,"rejected":10000,"#
                guard answer.status == 200, answer.body.starts(with: Array(counts.utf8)) else {
                    Issue.record("\(answer.status) \(answer.text.prefix(500))")
                    return
                }
                #expect(answer.body.count < 64 << 10)
            }
            // One over it, and all of them at once.
            for count in [10_001, 5_000_000, 10_000_000] {
                let body = Request.events(String(repeating: "1\n", count: count), key: app.key)
                let one = try daemon.connect()
                try? one.send(body.bytes)
                let code = count == 10_000_000 ? "body_too_large" : "too_many_lines"
                #expect(try one.answer().json["error"]["code"] == .string(code))
            }
            #expect(memory.growth < 64 << 20, "\(memory.growth >> 20) MiB more")
            #expect(try daemon.metric("tapline_events_received_total") == 10_000_000)
            #expect(try daemon.metric("tapline_events_rejected_total") == 10_000_000)
            #expect(try app.storedCount() == 0)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func onlyNewlinesAreNoLines() throws {
            let (daemon, app) = try Self.daemon()
            let memory = try Memory(daemon)
            let newlines = [UInt8](repeating: 0x0A, count: 10 << 20)
            for request in [
                Request.events(newlines, key: app.key),
                Request.events(newlines, key: app.key).gzipped,
                Request.events((0..<5 << 20).flatMap { _ in [13, 10] }, key: app.key).gzipped,
            ] {
                let answer = try daemon.send(request)
                #expect(answer.status == 200, "\(answer.text)")
                #expect(try answer.json["received"] == .int(0))
            }
            #expect(memory.growth < 64 << 20, "\(memory.growth >> 20) MiB more")
            #expect(try app.store([App.click("after")])["accepted"] == .int(1))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func manyMembersAndLongTextsWithinTheLimitsAreStoredAsTheyAre() throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo,
                settings: ["load.batch_age_ms": "5", "http.line_bytes_max": "4MiB"]
            ).start()
            let app = try App(daemon)
            let members = (0..<10_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
            let text = String(repeating: "👨‍👩‍👧", count: 200_000)
            try app.store([
                App.click("members", ",\"properties\":{\(members)}"),
                App.click("text", ",\"properties\":{\"t\":\"\(text)\"}"),
            ])
            let rows = try app.stored(
                "(SELECT count(*) FROM jsonb_object_keys(properties::jsonb)), "
                    + "properties::jsonb->>'k9999', md5(properties::jsonb->>'t'), "
                    + "md5('\(text)')")
            #expect(rows.count == 2 && rows[0][0] == "10000" && rows[0][1] == "9999")
            #expect(rows.last?[0] == "1" && rows.last?[2] == rows.last?[3])
            #expect(try daemon.stop() == .code(0))
        }

        // MARK: A client that divides what is refused

        /// How a client sends its lines.
        enum Way: CaseIterable {
            /// One body that is too large, of lines of which some are bad.
            case lines
            /// A JSON array, which one bad item makes unreadable as a whole.
            case array
            /// As an SDK's CI does it: 400 though the good lines are taken.
            case strict
        }

        /// Sends some lines, in halves if they are refused for what they are.
        ///
        /// - Returns: The lines that are bad, with the reason.
        private static func bisect(
            _ lines: ArraySlice<String>, _ way: Way, _ daemon: Daemon, _ key: String
        ) throws -> [(line: String, reason: String)] {
            var request = Request.events(
                lines.joined(separator: "\n"), key: key,
                query: way == .strict ? "?strict=1" : "")
            if way == .array {
                request.body = Array("[\(lines.joined(separator: ","))]".utf8)
                request = request.with("Content-Type", "application/json")
            }
            // A connection each, as a 413 ends the one that it is on, also while the body is still sent.
            let connection = try daemon.connect()
            try? connection.send(request.bytes)
            let answer = try connection.answer()
            let json = try answer.json
            switch answer.status {
            case 200:
                return json["errors"].items.map { error in
                    let index = lines.startIndex + Int(error["line"].int ?? 1) - 1
                    return (lines[index], error["code"].text ?? "")
                }
            case 400, 413:
                guard lines.count > 1 else {
                    let reason = json["errors"][0]["code"].text ?? json["error"]["code"].text
                    return [(lines.first ?? "", reason ?? "")]
                }
                let middle = lines.startIndex + lines.count / 2
                return try bisect(lines[..<middle], way, daemon, key)
                    + bisect(lines[middle...], way, daemon, key)
            default: throw Failure("\(answer.status) \(answer.text)")
            }
        }

        @Test(arguments: Way.allCases) func whoDividesWhatIsRefusedHasEachGoodLineStoredOnce(
            way: Way
        ) throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo,
                settings: [
                    "load.batch_age_ms": "5", "http.body_bytes_max": "64KiB",
                    "http.body_lines_max": "100", "http.line_bytes_max": "4KiB",
                ]
            ).start()
            let app = try App(daemon)
            let bad: [(at: Int, line: String, reasons: Set<String>)] = [
                (17, #"{"type":"clicked","message_uid":true}"#, ["invalid_type"]),
                (300, #"{"type":"clicked","#, ["bad_json"]),
                (
                    301, App.click("long", #","x":"\#(String(repeating: "x", count: 5_000))""#),
                    ["line_too_long"]
                ),
                (
                    302, App.click("huge", #","x":"\#(String(repeating: "x", count: 70_000))""#),
                    ["line_too_long", "body_too_large"]
                ),
                (777, "{}", ["missing_type"]),
            ]
            var lines = (0..<1_000).map { App.click("b\($0)", #","event_uid":"b\#($0)""#) }
            for one in bad { lines[one.at] = one.line }
            let found = try Self.bisect(lines[...], way, daemon, app.key)
            #expect(found.count == bad.count, "\(found.map { ($0.line.prefix(60), $0.reason) })")
            for one in bad {
                let reason = found.first { $0.line == one.line }?.reason ?? "none"
                #expect(one.reasons.contains(reason), "\(one.line.prefix(60)): \(reason)")
            }
            #expect(try app.storedCount() == 1_000 - bad.count)
            let stored = Set(try app.stored("message_uid").compactMap { $0[0] })
            let good = lines.indices.filter { index in !bad.contains { $0.at == index } }
            #expect(stored == Set(good.map { "b\($0)" }))
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }
    }
}
