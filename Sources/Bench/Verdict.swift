import Platform

/// What must hold of a run, whatever happened meanwhile (docs/bench.md).
package enum Law: String, CaseIterable, Sendable {
    case stored = "L1"
    case issued = "L2"
    case unacknowledged = "L3"
    case balanced = "L4"
    case fresh = "L5"
    case bounded = "L6"
    case report = "L7"

    /// The law in one line.
    package var text: String {
        switch self {
        case .stored: "what was acknowledged is there exactly once"
        case .issued: "what is stored was sent, and with that content"
        case .unacknowledged: "what was not acknowledged is there once or not at all"
        case .balanced: "the books balance"
        case .fresh: "a fresh event is stored"
        case .bounded: "memory, descriptors and threads are bounded"
        case .report: "the report counts what was sent"
        }
    }
}

/// Whether a law holds.
package struct LawVerdict: Equatable, Sendable {
    package let law: Law
    /// Nil where it was not looked at.
    package let holds: Bool?
    /// The numbers, in one line.
    package let detail: String
    /// What breaks it: the first few of each kind.
    package let breaches: [String]

    /// Makes a verdict.
    package init(_ law: Law, _ holds: Bool?, _ detail: String, _ breaches: [String] = []) {
        self.law = law
        self.holds = holds
        self.detail = detail
        self.breaches = breaches
    }
}

/// What a check of a run found.
package struct Verdict: Equatable, Sendable {
    package var seed: UInt64 = 0
    /// Events that may have been sent.
    package var issued = 0
    package var acknowledged = 0
    /// Events of the run in the tables, each once.
    package var stored = 0
    package var deadLettered = 0
    package var conflicts = 0
    /// Acknowledged, and nowhere.
    package var missing = 0
    /// Stored more than once.
    package var doubled = 0
    /// Stored with another content.
    package var altered = 0
    /// Stored with an id of the run that was never sent.
    package var unknown = 0
    /// How long the check took, waiting for the spool included.
    package var seconds = 0.0
    package var laws: [LawVerdict] = []

    /// Makes an empty verdict.
    package init() {}

    /// Whether no law is broken.
    package var holds: Bool { laws.allSatisfy { $0.holds != false } }

    private var counts: [(name: String, value: Int)] {
        [
            ("issued", issued), ("acknowledged", acknowledged), ("stored", stored),
            ("dead_lettered", deadLettered), ("conflicts", conflicts), ("missing", missing),
            ("doubled", doubled), ("altered", altered), ("unknown", unknown),
        ]
    }

    /// For people.
    package var table: String {
        let rows = [("seed", "\(seed)")] + counts.map { ($0.name, "\($0.value)") }
        var text = rows.map { name, value in
            name + String(repeating: " ", count: 15 - name.count) + value + "\n"
        }.joined()
        for verdict in laws {
            let word = verdict.holds.map { $0 ? "holds " : "BROKEN" } ?? "-     "
            text += "\(verdict.law.rawValue)  \(word)  \(verdict.law.text)"
            text += verdict.detail.isEmpty ? "\n" : ": \(verdict.detail)\n"
            for breach in verdict.breaches { text += "            \(breach)\n" }
        }
        return text
    }

    /// One JSON object on one line.
    package var json: String {
        let laws = laws.map { verdict in
            "{\"law\":\"\(verdict.law.rawValue)\",\"text\":\(JSONString.quoted(verdict.law.text)),"
                + "\"holds\":\(verdict.holds.map { "\($0)" } ?? "null"),"
                + "\"detail\":\(JSONString.quoted(verdict.detail)),"
                + "\"breaches\":[\(verdict.breaches.map(JSONString.quoted).joined(separator: ","))]}"
        }
        return "{\"seed\":\(seed)," + counts.map { "\"\($0.name)\":\($0.value)," }.joined()
            + "\"milliseconds\":\(Int((seconds * 1000).rounded())),"
            + "\"laws\":[\(laws.joined(separator: ","))],\"holds\":\(holds)}\n"
    }
}
