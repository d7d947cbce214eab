import Event
import Metrics
import Platform
import Postgres

/// What ops see of the loader.
package final class LoadMetrics: Sendable {
    let batches: Counter
    let batchSeconds: Histogram
    let closeSeconds: Histogram
    let databaseUp: Gauge
    let unreadable: Counter
    private let failures: [String: Counter]
    private let registry: Registry
    private let conflicts = Sync.Monitor<[ConflictSource: Counter]>([:])

    /// Registers the loader's metrics.
    package init(registry: Registry) {
        batches = registry.counter("tapline_load_batches_total", "Load transactions committed")
        batchSeconds = registry.histogram(
            "tapline_load_batch_seconds", "Time of one load transaction, from turn to commit")
        closeSeconds = registry.histogram(
            "tapline_segment_close_seconds", "Time to close a full segment, during which none loads"
        )
        databaseUp = registry.gauge(
            "tapline_database_up", "1 while the loader has a session with the database")
        unreadable = registry.counter(
            "tapline_spool_unreadable_records_total",
            "Spool records whose content this version cannot read")
        var failures: [String: Counter] = [:]
        for reason in ["connection", "retry", "configuration", "row", "fenced", "spool", "other"] {
            failures[reason] = registry.counter(
                "tapline_load_failures_total", "Load transactions that failed, by reason",
                ["reason": reason])
        }
        self.failures = failures
        self.registry = registry
    }

    /// Whether the loader has a session with the database.
    package var isDatabaseUp: Bool { databaseUp.value == 1 }

    /// Counts the conflicts of a batch that is committed by who sent them: it is most often one version of
    /// one SDK that gives one id to two events.
    func noteConflicts(_ verdicts: [StoredVerdict], of batch: borrowing LoadBatch) {
        for (index, verdict) in verdicts.enumerated() where verdict == .conflict {
            let row = batch.row(index)
            let source = ConflictSource(
                app: row.text(.app) ?? "", sdkVersion: row.text(.sdkVersion) ?? "")
            counter(of: source).add()
        }
    }

    private func counter(of source: ConflictSource) -> Counter {
        conflicts.withLock { conflicts in
            let isKept = conflicts[source] != nil || conflicts.count < ConflictSource.countMax
            let source = isKept ? source : .other
            if let counter = conflicts[source] { return counter }
            let counter = registry.counter(
                "tapline_conflicts_total",
                "Events whose identity is stored with another content, since the start, by sender",
                ["app": source.app, "sdk_version": source.sdkVersion])
            conflicts[source] = counter
            return counter
        }
    }

    func noteFailure(_ error: LoadError) {
        databaseUp.set(0)
        failures[error.metricLabel]?.add()
    }
}

/// Who sent an event, as far as metrics tell.
private struct ConflictSource: Hashable {
    let app: String
    let sdkVersion: String

    /// Clients choose these texts, so there is an end to how many series they make.
    static let countMax = 100
    /// All that come after so many.
    static let other = ConflictSource(app: "other", sdkVersion: "other")
}

extension LoadError {
    /// The label of ``LoadMetrics`` for this failure.
    var metricLabel: String {
        switch self {
        case .postgres(let error):
            switch error.errorClass {
            case .connection: "connection"
            case .retryBatch, .missingPartition: "retry"
            case .configuration: "configuration"
            case .isolateRow: "row"
            case .retryWithAlert: "other"
            }
        case .fenced, .otherHistory, .spoolIsLoadedElsewhere: "fenced"
        case .everyRowFails, .deadLettersChanged: "row"
        case .schema: "configuration"
        case .spool, .unreadable: "spool"
        case .removalIsRunning: "other"
        }
    }

    /// Whether it will last until a person does something.
    var needsAPerson: Bool {
        switch metricLabel {
        case "connection", "retry": false
        default: true
        }
    }
}
