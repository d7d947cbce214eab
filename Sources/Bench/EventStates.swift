/// What is known of each event of a run: a byte an event, so that a run of any size is checked in
/// memory that is known before.
struct EventStates {
    struct Mark: OptionSet {
        let rawValue: UInt8
        /// It may have been sent.
        static let issued = Mark(rawValue: 1)
        static let acknowledged = Mark(rawValue: 2)
        static let stored = Mark(rawValue: 4)
        /// It is stored more than once.
        static let doubled = Mark(rawValue: 8)
        /// It is stored with another content.
        static let altered = Mark(rawValue: 16)
        /// PostgreSQL refused it, and says why.
        static let deadLetter = Mark(rawValue: 32)
        /// It is kept as a conflict with another event.
        static let conflict = Mark(rawValue: 64)
    }

    private var marks: [UInt8]

    /// What the log says.
    init(_ log: AckLogContent) {
        let plan = log.plan
        var marks = [UInt8](repeating: 0, count: plan.events)
        for body in 0..<log.issuedBodies {
            plan.forEachNumber(ofBody: body) { marks[$0] |= Mark.issued.rawValue }
        }
        for body in log.acknowledged {
            plan.forEachNumber(ofBody: body) { marks[$0] |= Mark.acknowledged.rawValue }
        }
        self.marks = marks
    }

    var count: Int { marks.count }

    subscript(number: Int) -> Mark {
        get { Mark(rawValue: marks[number]) }
        set { marks[number] = newValue.rawValue }
    }

    /// How many have all of `marks` and none of `others`.
    func count(_ wanted: Mark, without others: Mark = []) -> Int {
        let (wanted, others) = (wanted.rawValue, others.rawValue)
        return marks.count { $0 & wanted == wanted && $0 & others == 0 }
    }

    /// The first few of them.
    func first(_ limit: Int, _ wanted: Mark, without others: Mark = []) -> [Int] {
        let (wanted, others) = (wanted.rawValue, others.rawValue)
        return Array(
            marks.indices.lazy
                .filter { marks[$0] & wanted == wanted && marks[$0] & others == 0 }.prefix(limit))
    }
}
