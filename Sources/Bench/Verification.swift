import Client
import Daemon
import Glibc
import Load
import Platform
import Postgres
import Report
import Spool

/// Holds the database against the log of a run.
package struct Verification {
    private let log: AckLogContent
    private let app: String
    private let dataDirectory: String
    private let probe: DaemonProbe?

    /// So long a check waits for what is spooled to be loaded.
    package static let drainSecondsMax = 60.0

    /// - Parameters:
    ///   - path: The log.
    ///   - dataDirectory: Where a spool may be; one that is not there is another machine's.
    ///   - probe: The daemon to ask; nil leaves L5 and L6 out.
    /// - Throws: ``BenchError`` when the log cannot be read, or is of another database.
    package init(
        path: String, dataDirectory: String, probe: DaemonProbe?,
        on connection: borrowing PostgresConnection
    ) throws(BenchError) {
        log = try AckLogContent(path: path)
        self.dataDirectory = dataDirectory
        self.probe = probe
        let hash = log.keyHash
        let key: APIKeys.Row?
        do throws(LoadError) {
            key = try APIKeys.all(connection).first { $0.hash == hash }
        } catch {
            throw .load(error)
        }
        guard let key else { throw .unknownKey(path: path) }
        app = key.app
    }

    /// Waits until the spool is loaded, then checks every law.
    ///
    /// - Throws: ``BenchError`` when it cannot be checked; a broken law is in the verdict.
    package func run(_ connection: borrowing PostgresConnection) throws(BenchError) -> Verdict {
        let began = Clock.monotonic()
        var verdict = Verdict()
        verdict.seed = log.plan.seed
        let isDrained = try waitUntilDrained(connection)
        var scan = StoredScan(log, app: app)
        do throws(PostgresError) {
            try scan.read(connection)
        } catch {
            throw .load(.postgres(error))
        }
        count(scan, &verdict)
        verdict.laws = [
            Self.stored(scan, verdict, isDrained: isDrained), Self.issued(scan, verdict),
            Self.unacknowledged(scan), try balanced(connection),
        ]
        verdict.laws += try probed()
        verdict.laws.append(try report(connection, scan.states))
        verdict.seconds = Double(Clock.monotonic() - began) / 1_000_000
        return verdict
    }

    // MARK: Waiting

    /// Waits until nothing is spooled here, and other daemons have said so of theirs since the check
    /// began.
    ///
    /// - Returns: Whether it came to that in time.
    private func waitUntilDrained(
        _ connection: borrowing PostgresConnection
    ) throws(BenchError) -> Bool {
        let deadline = Clock.deadline(inMilliseconds: Int(Self.drainSecondsMax * 1000))
        do throws(LoadError) {
            let own = (try? SpoolFiles.identity(directory: dataDirectory + "/spool")) ?? nil
            let began = Clock.now()
            while true {
                let oldest = try DataThrough.oldestSpooled(connection, dataDirectory: dataDirectory)
                // A daemon that has not spoken since the run has ended long ago.
                let silent = try Books.spools(
                    connection, except: own?.id, lastPublishedIn: log.plan.start..<began)
                if oldest == nil, silent == 0 { return true }
                guard Clock.monotonic() < deadline else { return oldest == nil }
                usleep(100_000)
            }
        } catch {
            throw .load(error)
        }
    }

    // MARK: The laws

    private func count(_ scan: StoredScan, _ verdict: inout Verdict) {
        let states = scan.states
        verdict.issued = states.count(.issued)
        verdict.acknowledged = states.count(.acknowledged)
        verdict.stored = states.count(.stored)
        verdict.deadLettered = states.count(.deadLetter)
        verdict.conflicts = states.count(.conflict)
        verdict.missing = states.count(.acknowledged, without: Self.found)
        verdict.doubled = states.count(.doubled)
        verdict.altered = states.count(.altered)
        verdict.unknown = scan.unknownCount
    }

    /// Where an acknowledged event may be.
    private static let found: EventStates.Mark = [.stored, .deadLetter, .conflict]

    private static func names(_ title: String, _ numbers: [Int], _ scan: StoredScan) -> [String] {
        numbers.map { "\(title): \(scan.maker.name($0))" }
    }

    private static func stored(
        _ scan: StoredScan, _ verdict: Verdict, isDrained: Bool
    ) -> LawVerdict {
        let limit = StoredScan.namesMax
        let states = scan.states
        let doubled: EventStates.Mark = [.acknowledged, .doubled]
        var breaches = names("missing", states.first(limit, .acknowledged, without: found), scan)
        breaches += names("doubled", states.first(limit, doubled), scan)
        let holds = breaches.isEmpty
        if !isDrained {
            breaches.insert("the spool is not loaded after \(Int(drainSecondsMax)) s", at: 0)
        }
        var detail =
            "\(verdict.acknowledged) acknowledged, \(verdict.missing) missing, "
            + "\(states.count(doubled)) doubled"
        for reason in scan.deadLetterReasons.prefix(5) { detail += "; dead letters: \(reason)" }
        return LawVerdict(.stored, holds && isDrained, detail, breaches)
    }

    private static func issued(_ scan: StoredScan, _ verdict: Verdict) -> LawVerdict {
        LawVerdict(
            .issued, verdict.altered + verdict.unknown == 0,
            "\(verdict.stored) stored, \(verdict.altered) altered, \(verdict.unknown) never sent",
            scan.altered.map { "altered: \($0)" } + scan.unknown.map { "never sent: \($0)" })
    }

    private static func unacknowledged(_ scan: StoredScan) -> LawVerdict {
        let states = scan.states
        let open = states.count(.issued, without: .acknowledged)
        let stored = states.count([.issued, .stored], without: .acknowledged)
        let doubled = states.first(StoredScan.namesMax, .doubled, without: .acknowledged)
        return LawVerdict(
            .unacknowledged, doubled.isEmpty,
            "\(open) not acknowledged, \(stored) of them stored",
            names("doubled", doubled, scan))
    }

    private func balanced(
        _ connection: borrowing PostgresConnection
    ) throws(BenchError) -> LawVerdict {
        do throws(LoadError) {
            let outcome: CheckOutcome
            switch try Check.run(connection, dataDirectory: dataDirectory) {
            case .success(let found): outcome = found
            case .failure(let error): throw LoadError.spool(error)
            }
            let terms = outcome.books.terms.map { "\($0.value) \($0.name)" }
            return LawVerdict(
                .balanced, outcome.books.isBalanced, terms.joined(separator: ", "),
                outcome.books.isBalanced
                    ? []
                    : [
                        "received differs from the sum by \(outcome.books.difference), "
                            + "\(outcome.books.quarantined) records cannot be read"
                    ])
        } catch {
            throw .load(error)
        }
    }

    private func probed() throws(BenchError) -> [LawVerdict] {
        guard let probe else {
            let reason = "not looked at: no --url"
            return [LawVerdict(.fresh, nil, reason), LawVerdict(.bounded, nil, reason)]
        }
        do throws(ClientError) {
            return [try probe.freshEvent(), try probe.process()]
        } catch {
            throw .client(error)
        }
    }

    private func report(
        _ connection: borrowing PostgresConnection, _ states: EventStates
    ) throws(BenchError) -> LawVerdict {
        var options = ReportOptions()
        options.app = app
        options.journeys = .never
        let report: CampaignReport
        do throws(ReportError) {
            report = try CampaignReport.load(options, on: connection)
        } catch {
            throw .report(error)
        }
        let wanted = recount(log.plan) { number in
            let state = states[number]
            return state.contains(.stored)
                || state.contains(.acknowledged) && !state.contains(.deadLetter)
        }
        var breaches: [String] = []
        for (number, counts) in wanted.enumerated() {
            let campaign = "\(log.plan.prefix)c\(number)"
            let row = report.rows.first { $0.app == app && $0.campaign == campaign }
            let found = row.map(CampaignCounts.init) ?? CampaignCounts()
            if found != counts {
                breaches.append("campaign \(campaign): \(found.text), expected \(counts.text)")
            }
        }
        let total = wanted.reduce(into: CampaignCounts()) { $0.add($1) }
        return LawVerdict(
            .report, breaches.isEmpty, "\(wanted.count) campaigns: \(total.text)", breaches)
    }
}

extension CampaignCounts {
    /// The counts of a row; what the report does not know is none.
    init(_ row: ReportRow) {
        sent = row[.sent] ?? 0
        delivered = row[.delivered] ?? 0
        clicked = row[.clicked] ?? 0
        clicksTotal = row[.clicksTotal] ?? 0
    }

    mutating func add(_ other: CampaignCounts) {
        sent += other.sent
        delivered += other.delivered
        clicked += other.clicked
        clicksTotal += other.clicksTotal
    }
}
