import Client
import Foundation
import Glibc
import Testing

/// Sends to a server of the test, which decides the answers.
@Suite struct SenderTests {
    static func lines(_ count: Int) -> [UInt8] {
        Array((1...count).map { "{\"n\":\($0)}\n" }.joined().utf8)
    }

    static func send(
        _ bytes: [UInt8], to server: TestServer, batch: Int = 4, connections: Int = 1,
        retrySeconds: Double = 20
    ) throws -> SendSummary {
        var configuration = SendConfiguration()
        configuration.url = server.url
        configuration.key = "k1"
        configuration.batchLines = batch
        configuration.connections = connections
        configuration.retrySeconds = retrySeconds
        return try Sender(configuration).send([.memory(name: "x.ndjson", bytes)])
    }

    @Test func everyLineIsSentOnceInBodiesOfTheBatchSize() throws {
        let server = try TestServer { .taken($0.lines.count) }
        defer { server.stop() }
        let summary = try Self.send(Self.lines(10), to: server, connections: 3)
        #expect(summary.isComplete)
        #expect(summary.received == 10)
        #expect(summary.accepted == 10)
        #expect(server.seen.map(\.lines.count).sorted() == [2, 4, 4])
        let sent = server.seen.flatMap(\.lines)
        #expect(Set(sent).count == 10 && sent.count == 10)
    }

    @Test func aRequestIsAGzippedPostWithTheKey() throws {
        let server = try TestServer { .taken($0.lines.count) }
        defer { server.stop() }
        _ = try Self.send(Self.lines(1), to: server)
        let request = try #require(server.seen.first)
        #expect(request.target == "POST /v1/events HTTP/1.1")
        #expect(request.headers["authorization"] == "Bearer k1")
        #expect(request.headers["content-encoding"] == "gzip")
        #expect(request.headers["content-type"] == "application/x-ndjson")
    }

    @Test(arguments: ["header", "json"]) func retryAfterIsHonoured(place: String) throws {
        let server = try TestServer { request in
            guard request.number == 1 else { return .taken(request.lines.count) }
            return place == "header"
                ? ScriptedAnswer(status: 503, headers: ["Retry-After: 1"], json: "{}")
                : ScriptedAnswer(status: 429, json: "{\"retry_after\":0.7}")
        }
        defer { server.stop() }
        let summary = try Self.send(Self.lines(3), to: server)
        #expect(summary.isComplete)
        #expect(summary.retries == 1)
        #expect(server.seen.count == 2)
        #expect(server.seen[0].body == server.seen[1].body)
        #expect(server.seen[1].at - server.seen[0].at >= (place == "header" ? 1 : 0.7))
    }

    @Test func aBodyTooLargeIsHalvedUntilItFits() throws {
        let server = try TestServer { request in
            request.lines.count > 3
                ? ScriptedAnswer(status: 413, json: "{\"message\":\"too many lines\"}")
                : .taken(request.lines.count)
        }
        defer { server.stop() }
        let summary = try Self.send(Self.lines(23), to: server, batch: 16)
        #expect(summary.isComplete)
        #expect(summary.received == 23)
        let taken = server.seen.filter { $0.lines.count <= 3 }.flatMap(\.lines)
        #expect(taken.count == 23 && Set(taken).count == 23)
    }

    @Test func aSingleLineTooLargeFailsAloneAndIsNamed() throws {
        let server = try TestServer { request in
            request.body.count > 60
                ? ScriptedAnswer(status: 413, json: "{\"message\":\"too large\"}")
                : .taken(request.lines.count)
        }
        defer { server.stop() }
        let long = Array("{\"x\":\"\(String(repeating: "y", count: 80))\"}\n".utf8)
        let summary = try Self.send(Self.lines(2) + long + Self.lines(3), to: server)
        #expect(!summary.isComplete)
        #expect(summary.accepted == 5)
        #expect(summary.failedLines == 1)
        #expect(
            summary.problems == [
                SendProblem(
                    file: "x.ndjson", line: 3, message: "line 3 not sent: 413 too large")
            ])
    }

    @Test func aRejectedLineIsNamedByItsLineOfTheFile() throws {
        let server = try TestServer { request in
            let text = String(decoding: request.body, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            guard let bad = lines.firstIndex(where: { $0.contains("bad") }) else {
                return .taken(request.lines.count)
            }
            return .taken(
                request.lines.count, rejected: 1,
                errors: """
                    {"line":\(bad + 1),"code":"not_json","message":"unexpected \\"b\\""}
                    """)
        }
        defer { server.stop() }
        let bytes = Self.lines(5) + Array("\n\nbad\n".utf8) + Self.lines(2)
        let summary = try Self.send(bytes, to: server)
        #expect(!summary.isComplete)
        #expect(summary.received == 8)
        #expect(summary.accepted == 7)
        #expect(
            summary.problems == [
                SendProblem(file: "x.ndjson", line: 8, message: "not_json: unexpected \"b\"")
            ])
    }

    @Test func aBodyRefusedWith400CostsNoOther() throws {
        let server = try TestServer { request in
            request.number == 1
                ? ScriptedAnswer(status: 400, json: "{\"error\":{\"message\":\"bad gzip\"}}")
                : .taken(request.lines.count)
        }
        defer { server.stop() }
        let summary = try Self.send(Self.lines(8), to: server)
        #expect(summary.accepted == 4)
        #expect(summary.failedBodies == 1)
        #expect(summary.failedLines == 4)
        #expect(summary.problems.first?.message == "lines 1-4 not sent: 400 bad gzip")
        #expect(server.seen.count == 2)
    }

    @Test(arguments: [401, 403, 404, 415, 302]) func aFinalAnswerStopsSending(
        status: Int
    ) throws {
        let server = try TestServer { _ in
            ScriptedAnswer(status: status, json: "{\"error\":\"no\"}")
        }
        defer { server.stop() }
        let summary = try Self.send(Self.lines(40), to: server)
        #expect(summary.stopReason == "\(status) no")
        #expect(server.seen.count == 1)
        #expect(!summary.isComplete)
    }

    @Test func a200InOtherWordsIsNotSuccess() throws {
        let server = try TestServer { _ in ScriptedAnswer(json: "<html>Welcome</html>") }
        defer { server.stop() }
        let summary = try Self.send(Self.lines(4), to: server)
        #expect(summary.accepted == 0)
        #expect(summary.stopReason?.hasPrefix("answered 200") == true)
    }

    @Test func aServerThatComesUpLaterGetsEverything() throws {
        let probe = try TestServer { _ in .taken(0) }
        let port = probe.port
        probe.stop()
        var server: TestServer?
        defer { server?.stop() }
        var configuration = SendConfiguration()
        configuration.url = "http://127.0.0.1:\(port)"
        configuration.batchLines = 2
        let sender = Sender(
            configuration,
            progress: { progress in
                guard progress.waiting != nil, server == nil else { return }
                server = try? TestServer(port: port) { .taken($0.lines.count) }
            })
        let summary = try sender.send([.memory(name: "x", Self.lines(6))])
        #expect(summary.isComplete)
        #expect(summary.accepted == 6)
        #expect(summary.retries > 0)
    }

    @Test func aServerThatStaysAwayIsGivenUp() throws {
        let probe = try TestServer { _ in .taken(0) }
        probe.stop()
        let summary = try Self.send(Self.lines(6), to: probe, retrySeconds: 0.3)
        #expect(summary.accepted == 0)
        #expect(summary.stopReason?.contains("connect") == true)
        #expect(!summary.isComplete)
    }

    @Test func cancellingStopsAtOnce() throws {
        let server = try TestServer { _ in
            ScriptedAnswer(status: 503, headers: ["Retry-After: 60"], json: "{}")
        }
        defer { server.stop() }
        var configuration = SendConfiguration()
        configuration.url = server.url
        let sender = Sender(configuration, isCancelled: { !server.seen.isEmpty })
        let summary = try sender.send([.memory(name: "x", Self.lines(6))])
        #expect(summary.stopReason == "interrupted")
        #expect(summary.failedLines == 6)
    }

    @Test func aMissingFileIsNamedBeforeAnythingIsSent() throws {
        let server = try TestServer { .taken($0.lines.count) }
        defer { server.stop() }
        var configuration = SendConfiguration()
        configuration.url = server.url
        let error = ClientError.unreadable(
            file: "/no/such", reason: "no such file or directory")
        #expect(throws: error) {
            try Sender(configuration).send([
                .memory(name: "x", Self.lines(6)), .file("/no/such"),
            ])
        }
        #expect(server.seen.isEmpty)
    }

    @Test func aTruncatedFileSendsItsWholeLinesAndIsNamed() throws {
        let server = try TestServer { .taken($0.lines.count) }
        defer { server.stop() }
        let path = NSTemporaryDirectory() + "/tapline-\(UUID().uuidString).ndjson.gz"
        let whole = try #require(gzipMember(Self.lines(20_000)))
        try Data(whole.prefix(whole.count / 2)).write(to: URL(fileURLWithPath: path))
        defer { _ = unsafe unlink(path) }
        var configuration = SendConfiguration()
        configuration.url = server.url
        let summary = try Sender(configuration).send([.file(path)])
        #expect(summary.failedFiles == 1)
        #expect(summary.received > 0 && summary.received < 20_000)
        #expect(server.seen.allSatisfy { $0.body.last == 0x0A })
        #expect(
            summary.problems == [
                SendProblem(
                    file: path, line: nil,
                    message: "could not read \"\(path)\": gzip data are truncated")
            ])
    }
}
