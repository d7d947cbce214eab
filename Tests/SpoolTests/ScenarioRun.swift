import Foundation
import Platform
import Spool

/// A run of a ``Scenario``: the spool, and the simple model that it is held against.
struct ScenarioRun {
    private struct Broken: Error { let what: String }

    private let scenario: Scenario
    private var random: SplitMix
    private var disk: FakeDisk
    private var spool: Spool?
    private var reader: SpoolReader?

    // The model: a list of payloads, which of them are acknowledged and where, and how far the
    // reader and the database are.
    private var payloads: [[UInt8]] = []
    private var acknowledged: [Int: SpoolMark] = [:]
    private var damaged: Set<Int> = []
    private var lastRead = -1
    private var lastMark: SpoolMark?
    private var checkpoint: (record: Int, mark: SpoolMark)?
    /// Up to here the database has what it needs.
    private var loaded = -1
    /// Files of which a sync had failed before the present step.
    private var failedFiles: Set<Int> = []

    init(_ scenario: Scenario) throws {
        self.scenario = scenario
        random = SplitMix(state: scenario.seed ^ 0x5EED)
        disk = try FakeDisk(seed: scenario.seed, order: scenario.order)
    }

    /// - Returns: How the spool broke its promise; nil when it kept it.
    mutating func failure() -> String? {
        defer { close() }
        do {
            try open(.init())
            for (number, step) in scenario.steps.enumerated() {
                do {
                    try take(step)
                } catch let broken as Broken {
                    return "step \(number), \(step): \(broken.what)"
                }
            }
            try finish()
            return nil
        } catch let broken as Broken {
            return "after the last step: \(broken.what)"
        } catch {
            return "\(error)"
        }
    }

    // MARK: Opening and closing

    private var options: SpoolOptions {
        var options = SpoolOptions()
        options.segmentBytesMax = 400
        options.keepSeconds = 0
        options.keepBytes = 0
        options.storage = disk.storage
        return options
    }

    private mutating func close() {
        reader = nil
        spool?.close()
        spool = nil
    }

    /// Opens the spool and a reader at the checkpoint. A fault may keep it from opening, once.
    private mutating func open(_ fault: FakeDisk.Fault) throws {
        disk.begin(fault)
        do {
            spool = try Spool(directory: disk.fixture.path, options: options)
        } catch {
            guard fault != .init() else { throw Broken(what: "it does not open: \(error)") }
            if disk.isOff { try end(fault.ending) }
            return try open(.init())
        }
        if disk.isOff { return try restart(fault.ending, .init()) }
        do {
            reader = try spool!.makeReader(from: checkpoint?.mark)
            lastRead = checkpoint?.record ?? -1
            lastMark = checkpoint?.mark
        } catch {
            // It may be of a record that the disk itself has changed, or of one that was refused when
            // its sync failed, or it could not be cut off: found after a restart, and lost after all.
            let record = checkpoint?.record ?? -1
            let isRefused =
                acknowledged[record] == nil && (disk.hasSyncFailed || disk.hasCleanupFailed)
            guard damaged.contains(record) || isRefused else {
                throw Broken(what: "the checkpoint of record \(record) is lost: \(error)")
            }
            reader = try spool!.makeReader(from: nil)
            (lastRead, lastMark) = (-1, nil)
            self.checkpoint = nil
        }
        if damaged.isEmpty, !disk.hasCleanupFailed, scenario.order == .inOrder,
            spool!.statistics.quarantinedRecords > 0
        {
            throw Broken(what: "something is in quarantine")
        }
    }

    /// What is left of the disk when the process has ended.
    private mutating func end(_ ending: Scenario.Ending) throws {
        switch ending {
        case .close: break
        case .kill: disk.revive()
        case .powerCut:
            disk = try disk.afterPowerCut(seed: random.next())
            failedFiles = []
        }
    }

    private mutating func restart(_ ending: Scenario.Ending, _ fault: FakeDisk.Fault) throws {
        if ending != .close { disk.turnOff() }
        close()
        try end(ending)
        try open(fault)
    }

    // MARK: Steps

    private mutating func take(_ step: Scenario.Step) throws {
        switch step.operation {
        case .append(let count, let bytes): try append(count, bytes, step.fault)
        case .read(let count):
            disk.begin(step.fault)
            try read(count)
        case .release:
            disk.begin(step.fault)
            guard let lastMark else { break }
            checkpoint = (lastRead, lastMark)
            loaded = max(loaded, lastRead)
            spool!.released(upTo: lastMark)
        case .restart(let ending): try restart(ending, step.fault)
        case .damage(let record, let bit): try damage(record, bit)
        }
        if disk.isOff { try restart(step.fault.ending, .init()) }
        failedFiles = disk.failedSyncs
    }

    private mutating func append(_ count: Int, _ bytes: Int, _ fault: FakeDisk.Fault) throws {
        disk.begin(fault)
        let first = payloads.count
        for number in first..<first + count {
            let digits = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
            payloads.append(digits + Array(repeating: UInt8(number & 255), count: bytes))
        }
        let results = Sync.Monitor<[Int: Result<SpoolMark, SpoolError>]>([:])
        func push(_ number: Int) throws {
            try spool!.append(payloads[number], events: 1) { result in
                results.withLock { $0[number] = result }
                results.broadcast()
            }
        }
        disk.hold()
        // Whatever happens, or closing would wait for the committer, and it for us.
        defer { disk.letGo() }
        try push(first)
        guard disk.waitUntilHeld() else { throw Broken(what: "nothing is written") }
        for number in first + 1..<first + count { try push(number) }
        disk.letGo()
        let deadline = Clock.deadline(inMilliseconds: 30_000)
        guard let all = results.wait(until: deadline, for: { $0.count == count ? $0 : nil }) else {
            throw Broken(what: "not every record has a verdict")
        }
        for number in first..<first + count {
            switch all[number]! {
            case .success(let mark):
                let name = Self.name(mark.segment)
                if let file = disk.node(name), failedFiles.contains(file) {
                    throw Broken(what: "acknowledged in \(name), of which a sync had failed")
                }
                acknowledged[number] = mark
            case .failure(let error):
                guard fault != .init() else {
                    throw Broken(what: "record \(number) is refused without a fault: \(error)")
                }
            }
        }
    }

    /// The file of a segment.
    private static func name(_ segment: UInt64) -> String {
        let digits = "\(segment)"
        return String(repeating: "0", count: 12 - digits.count) + digits + ".seg"
    }

    private mutating func read(_ count: Int) throws {
        for _ in 0..<count {
            guard let record = try next() else { return }
            let number = try self.number(of: record)
            guard number > lastRead else {
                throw Broken(what: "record \(number) comes after \(lastRead)")
            }
            try expectNoneMissing(lastRead + 1..<number)
            if let mark = acknowledged[number], mark != record.mark {
                throw Broken(what: "record \(number) is at \(record.mark), was at \(mark)")
            }
            (lastRead, lastMark) = (number, record.mark)
        }
    }

    /// The next record; a file that could not be moved or copied is tried again.
    private func next() throws -> SpoolRecord? {
        do {
            return try reader!.next(timeoutMilliseconds: 0)
        } catch {
            disk.begin(.init())
            guard !disk.isOff else { return nil }
            return try reader!.next(timeoutMilliseconds: 0)
        }
    }

    private func number(of record: SpoolRecord) throws -> Int {
        let number = record.payload.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
        guard payloads.indices.contains(number), payloads[number] == record.payload else {
            throw Broken(what: "a record that was never appended: \(record.payload.prefix(20))")
        }
        return number
    }

    private func expectNoneMissing(_ range: Range<Int>) throws {
        for number in range
        where number > loaded && acknowledged[number] != nil && !damaged.contains(number) {
            throw Broken(what: "acknowledged record \(number) is lost")
        }
    }

    private mutating func damage(_ record: Int, _ bit: Int) throws {
        let unread = acknowledged.keys.filter { $0 > lastRead && !damaged.contains($0) }.sorted()
        guard !unread.isEmpty, !disk.isOff else { return }
        let number = unread[record % unread.count]
        let mark = acknowledged[number]!
        let bytes = 24 + payloads[number].count
        let name = Self.name(mark.segment)
        damaged.insert(number)
        let place = Int(mark.offset) - bytes + (bit / 8) % bytes
        try disk.flip(name, at: place, bit: UInt8(bit % 8))
    }

    // MARK: The end

    /// Without faults everything works again, and all that is acknowledged is read.
    private mutating func finish() throws {
        try append(3, 20, .init())
        try expectAllRead()
        try restart(.powerCut, .init())
        try expectAllRead()
        // From the oldest segment, too, and by who only looks.
        let oldest = try spool!.makeReader(from: nil).all()
        let numbers = try oldest.map { try self.number(of: $0) }
        guard zip(numbers, numbers.dropFirst()).allSatisfy(<) else {
            throw Broken(what: "out of order from the oldest: \(numbers)")
        }
        let needed = acknowledged.keys.filter {
            $0 > loaded && !damaged.contains($0)
        }
        guard Set(needed).isSubset(of: numbers) else {
            throw Broken(what: "\(needed.sorted()) are acknowledged, and \(numbers) are read")
        }
        var scanned: [[UInt8]] = []
        try SpoolFiles.scan(directory: disk.fixture.path) { scanned.append($0.payload) }
        guard scanned == oldest.map(\.payload) else {
            throw Broken(what: "\(scanned.count) are scanned, \(oldest.count) are read")
        }
    }

    private mutating func expectAllRead() throws {
        disk.begin(.init())
        try read(.max)
        try expectNoneMissing(lastRead + 1..<payloads.count)
    }
}

extension FakeDisk.Fault {
    /// How the process ends when the fault ends it.
    fileprivate var ending: Scenario.Ending { kill == nil ? .powerCut : .kill }
}
