import Event
import Platform

/// The log of a run: what may have been sent and what was acknowledged, each line durable before it
/// counts.
///
/// A text file. The first line names the plan; then one line a body, in the order of the answers:
///
///     tapline-bench 1 seed=42 events=100000 batch=500 start=1764522000000000 delay=60000000 shuffle=0 key=HEX
///     issue 64         bodies 0 to 63 may have been sent
///     ack 17           body 17 was answered: all of its events are accepted
///     refuse 18        body 18 was answered, and not all of its events were accepted
///     end              the run came to its end
///
/// `key` is the SHA-256 of the ingest key, which tells the app. A last line without a newline was torn
/// by a crash and counts as not written.
package struct AckLog: ~Copyable {
    private let file: File
    private var end = 0
    private var pending: [UInt8] = []

    /// A line of the log.
    package enum Entry: Equatable, Sendable {
        case issue(upTo: Int)
        case ack(body: Int)
        case refuse(body: Int)
        case end
    }

    /// Begins a log.
    ///
    /// - Parameters:
    ///   - path: A file that is not there yet: a log is never written over.
    ///   - keyHash: SHA-256 of the ingest key.
    package static func create(
        _ path: String, plan: BenchPlan, keyHash: [UInt8]
    ) throws(SystemError) -> AckLog {
        var log = AckLog(file: try File(path, .createNew, permissions: 0o644))
        log.note(
            "\(Self.magic) seed=\(plan.seed) events=\(plan.events) batch=\(plan.batch) "
                + "start=\(plan.start) delay=\(plan.delay) shuffle=\(plan.isShuffled ? 1 : 0) "
                + "key=\(Hex.encode(keyHash))")
        try log.sync()
        try Directory.sync(Directory.parent(of: path))
        return log
    }

    private init(file: consuming File) { self.file = file }

    static let magic = "tapline-bench 1"

    /// Adds a line, which ``sync()`` makes durable.
    package mutating func note(_ entry: Entry) {
        switch entry {
        case .issue(let upTo): note("issue \(upTo)")
        case .ack(let body): note("ack \(body)")
        case .refuse(let body): note("refuse \(body)")
        case .end: note("end")
        }
    }

    private mutating func note(_ line: String) {
        pending += line.utf8
        pending.append(0x0A)
    }

    /// Makes all lines durable.
    ///
    /// - Throws: ``SystemError``; what was noted since the last call must then not be counted on.
    package mutating func sync() throws(SystemError) {
        guard !pending.isEmpty else { return }
        try file.write(pending.span, at: end)
        try file.sync()
        end += pending.count
        pending.removeAll(keepingCapacity: true)
    }
}

/// A log that has been read.
package struct AckLogContent: Equatable, Sendable {
    package let plan: BenchPlan
    package let keyHash: [UInt8]
    /// Bodies below this may have been sent.
    package private(set) var issuedBodies = 0
    /// Whether the run came to its end.
    package private(set) var isEnded = false
    /// Whether the last line was torn.
    package private(set) var isTorn = false
    package private(set) var acknowledged: [Int] = []
    package private(set) var refused: [Int] = []

    /// Reads a log.
    ///
    /// - Throws: ``BenchError/log(path:line:reason:)``, or that the file cannot be read.
    package init(path: String) throws(BenchError) {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try File.contents(of: path)
        } catch {
            throw .system(error)
        }
        try self.init(bytes, path: path)
    }

    /// Reads the bytes of a log; `path` is for messages.
    package init(_ bytes: [UInt8], path: String) throws(BenchError) {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        isTorn = lines.popLast()?.isEmpty == false
        guard let head = lines.first, let found = Self.head(head) else {
            throw .log(path: path, line: 1, reason: "is not the head of a log of \"tapline bench\"")
        }
        (plan, keyHash) = found
        for (index, line) in lines.enumerated().dropFirst() {
            guard let entry = Self.entry(line, bodies: plan.bodies) else {
                let text = String(decoding: line.prefix(40), as: UTF8.self)
                throw .log(
                    path: path, line: index + 1, reason: "\"\(text)\" is no entry of its run")
            }
            switch entry {
            case .issue(let upTo): issuedBodies = max(issuedBodies, upTo)
            case .ack(let body): acknowledged.append(body)
            case .refuse(let body): refused.append(body)
            case .end: isEnded = true
            }
        }
    }

    private static func head(_ line: ArraySlice<UInt8>) -> (BenchPlan, [UInt8])? {
        let text = String(decoding: line, as: UTF8.self)
        guard text.hasPrefix(AckLog.magic + " ") else { return nil }
        var values: [Substring: Substring] = [:]
        for word in text.dropFirst(AckLog.magic.count).split(separator: " ") {
            let parts = word.split(separator: "=", maxSplits: 1)
            if parts.count == 2 { values[parts[0]] = parts[1] }
        }
        guard let seed = values["seed"].flatMap({ UInt64($0) }),
            let events = values["events"].flatMap({ Int($0) }), events > 0,
            let batch = values["batch"].flatMap({ Int($0) }), batch > 0,
            let start = values["start"].flatMap({ Int64($0) }),
            let delay = values["delay"].flatMap({ Int64($0) }),
            let shuffle = values["shuffle"], let key = values["key"].flatMap({ Hex.decode($0) })
        else { return nil }
        let plan = BenchPlan(
            seed: seed, events: events, batch: batch, start: start, delay: delay,
            isShuffled: shuffle == "1")
        return (plan, key)
    }

    private static func entry(_ line: ArraySlice<UInt8>, bodies: Int) -> AckLog.Entry? {
        let words = String(decoding: line, as: UTF8.self).split(separator: " ")
        if words == ["end"] { return .end }
        guard words.count == 2, let number = Int(words[1]), number >= 0, number <= bodies else {
            return nil
        }
        switch words[0] {
        case "issue": return .issue(upTo: number)
        case "ack" where number < bodies: return .ack(body: number)
        case "refuse" where number < bodies: return .refuse(body: number)
        default: return nil
        }
    }
}
