import Foundation
import HTTPServer
import Ingest
import Platform
import Web

/// The first byte says of what kind the report is and of what version the request; then come the target
/// and the headers, a line each.
enum HeadProperty {
    private static let kinds: [ReportKind] = [.campaigns, .campaign("c"), .comparison]

    static let seeds: [[UInt8]] = [
        "\u{0}/v1/reports/campaigns?from=7d&to=2026-12-01&by=day,platform&limit=10&offset=3\nHost: a",
        "\u{1}/v1/reports/campaigns/a%20b%2Fc?as_of=2026-11-30T06:10:00Z&tz=Asia%2FKathmandu\nHost: a",
        "\u{2}/v1/reports/compare?campaign=a&campaign=%C3%A9&rate=ctr_sent&include-test\nHost: a",
        "\u{0}/?sort=ctr_sent&top=5&format=ndjson&conversion_window=7d&journeys=never&app=shop",
        "\u{0}/?format=html&since=1d&campaign=a+b%2Bc&by-activity=1\nHost: a\nExpect: 100-continue",
        "\u{8}http://h/v1/events?ack=stored\nHost: a\nContent-Length: 12\nContent-Encoding: gzip",
        "\u{8}/v1/events\nHost: a\nTransfer-Encoding: chunked\nAuthorization: Bearer k",
        "\u{9}/v1/events\nHost: a\nContent-Length: 3\ncontent-length: 4",
        "\u{A}/v1/events\nHost: a\nTransfer-Encodingchunked: x\nContent-Length:\t007 ",
    ].map { Array($0.utf8) }

    static func violation(_ input: [UInt8]) -> String? {
        guard let first = input.first else { return nil }
        var lines = input.dropFirst().split(separator: 0x0A, omittingEmptySubsequences: false)[...]
        let text = String(decoding: lines.popFirst() ?? [], as: UTF8.self)
        let fields = lines.map { line -> Field in
            let parts = line.split(
                separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
            // As the server hands them on: without the spaces before the value.
            return Field(
                name: Array(parts[0]),
                value: Array((parts.count > 1 ? parts[1] : []).drop { $0 == 0x20 || $0 == 0x09 }))
        }
        let kind = kinds[Int(first & 3) % kinds.count]
        return framingViolation(fields, isVersion11: first & 8 == 0)
            ?? targetViolation(text)
            ?? reportViolation(RequestTarget(text).queryItems, kind)
    }

    // MARK: Where a request ends

    private struct Field {
        let name: [UInt8]
        let value: [UInt8]

        var key: String { String(decoding: name, as: UTF8.self).lowercased() }
        /// A value that is framing is ASCII, so that anything else is as wrong.
        var text: String { String(decoding: value, as: UTF8.self) }
    }

    /// How long the body is, as the check says it.
    private enum Framing: Equatable {
        case none, chunked, both, refused
        case bytes(Int)
    }

    private static func framingViolation(_ fields: [Field], isVersion11: Bool) -> String? {
        let ours = framing(fields, isVersion11)
        let strict = strictFraming(fields, isVersion11)
        if ours != strict { return "ours \(ours), by the rules \(strict)" }
        // Another server may read the last of two headers where we read the first.
        let reversed = framing(fields.reversed(), isVersion11)
        return ours == reversed ? nil : "ours \(ours), from the end \(reversed)"
    }

    private static func framing(_ fields: [Field], _ isVersion11: Bool) -> Framing {
        var headers = HeaderFields()
        for field in fields {
            unsafe field.name.withUnsafeBytes { name in
                unsafe field.value.withUnsafeBytes { value in
                    unsafe headers.append(name: name, value: value)
                }
            }
        }
        guard let check = try? HeadCheck(headers, isVersion11: isVersion11) else { return .refused }
        if check.isChunked { return check.contentLength == nil ? .chunked : .both }
        return check.contentLength.map { .bytes($0) } ?? .none
    }

    /// The rules of RFC 9112 §6.3 and what we refuse beyond them, the slow way.
    private static func strictFraming(_ fields: [Field], _ isVersion11: Bool) -> Framing {
        let token = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz".unicodeScalars)
        for field in fields {
            guard !field.name.isEmpty, field.name.allSatisfy({ $0 < 0x80 }),
                field.key.unicodeScalars.allSatisfy(token.contains),
                !field.value.contains(0), !field.value.contains(0x0D)
            else { return .refused }
        }
        let framing = fields.filter {
            $0.key.hasPrefix("content-length") || $0.key.hasPrefix("transfer-encoding")
        }
        let hosts = fields.filter { $0.key == "host" }.count
        guard hosts == 1 || hosts == 0 && !isVersion11, framing.count < 2 else { return .refused }
        guard let field = framing.first else { return .none }
        switch field.key {
        case "transfer-encoding":
            let isChunked =
                field.value.allSatisfy { $0 < 0x80 }
                && field.text.lowercased() == "chunked"
            return isVersion11 && isChunked ? .chunked : .refused
        case "content-length":
            var digits = field.value
            while let last = digits.last, last == 0x20 || last == 0x09 { digits.removeLast() }
            let isNumber =
                (1...18).contains(digits.count)
                && digits.allSatisfy { (0x30...0x39).contains($0) }
            let length = Int(String(decoding: digits, as: UTF8.self))
            return isNumber ? length.map { .bytes($0) } ?? .refused : .refused
        default: return .refused
        }
    }

    // MARK: The target

    private static func targetViolation(_ text: String) -> String? {
        let target = RequestTarget(text)
        guard !target.path.utf8.contains(0x3F) else { return "a path with a ?: \(target.path)" }
        let whole = target.query.isEmpty ? target.path : target.path + "?" + target.query
        guard text.hasSuffix(whole) || text.hasSuffix(whole + "?") || target.path == "/" else {
            return "\(whole) is not of the target"
        }
        // What Foundation can decode at all it decodes as we do, but that it repairs what is no UTF-8 and
        // leaves out a byte order mark.
        if let theirs = text.removingPercentEncoding {
            let ours = RequestTarget.decodedPath(text[...])
            guard
                ours.map(withoutMark) == withoutMark(theirs)
                    || ours == nil && theirs.contains("\u{FFFD}")
            else { return "ours \(ours ?? "nil"), Foundation's \(theirs)" }
        }
        let items = target.queryItems
        let written = items.map { percentEncoded($0.name) + "=" + percentEncoded($0.value) }
        let again = RequestTarget("/?" + written.joined(separator: "&")).queryItems
        guard items.map(\.name) == again.map(\.name), items.map(\.value) == again.map(\.value)
        else { return "written and read again \(items) is \(again)" }
        for (name, _) in items
        where target.queryItem(name) != items.first(where: { $0.name == name })?.value {
            return "the first value of \(name) is another"
        }
        return nil
    }

    private static func withoutMark(_ text: String) -> [UInt8] {
        Array(text.utf8.dropFirst(text.utf8.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0))
    }

    // MARK: The parameters of a report

    private static func reportViolation(
        _ items: [(name: String, value: String)], _ kind: ReportKind
    ) -> String? {
        let request: ReportRequest
        do throws(ServiceRefusal) {
            request = try ReportRequest(kind, items, app: "shop")
        } catch {
            guard error.status == 400 || error.status == 403 && error.code == "wrong_app" else {
                return "refused with \(error.status)"
            }
            let answer = error.response.body
            guard error.message.utf8.count < 1000, answer.dropLast().allSatisfy({ $0 >= 0x20 }),
                (try? JSONSerialization.jsonObject(with: Data(answer))) != nil
            else { return "the answer is \(String(decoding: answer, as: UTF8.self))" }
            // Refused is refused, in whatever order.
            let isTaken = (try? ReportRequest(kind, items.reversed(), app: "shop")) != nil
            return isTaken ? "taken from the end: \(items)" : nil
        }
        // Nothing gives a key another app than its own, or a page without an end.
        guard request.options.app == "shop" else { return "of another app: \(items)" }
        guard 0...ReportRequest.limitMax ~= request.rowsMax, request.options.offset >= 0 else {
            return "\(request.rowsMax) rows from \(request.options.offset)"
        }
        guard request.parameters.count == items.count else { return "some of \(items) is ignored" }
        guard !items.contains(where: { $0.value.utf8.contains(0) }) else { return "a NUL is taken" }
        let names = Set(request.parameters.map(\.name))
        if kind == .comparison {
            guard 2...26 ~= Set(request.campaigns).count else { return "\(request.campaigns)" }
        } else if names.count < items.count {
            return "repeated: \(items)"
        }
        return nil
    }
}
