import Metrics
import Postgres

/// What ops see of the loader.
package final class LoadMetrics: Sendable {
    let batches: Counter
    let batchSeconds: Histogram
    let closeSeconds: Histogram
    let databaseUp: Gauge
    let unreadable: Counter
    private let failures: [String: Counter]

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
    }

    /// Whether the loader has a session with the database.
    package var isDatabaseUp: Bool { databaseUp.value == 1 }

    func noteFailure(_ error: LoadError) {
        databaseUp.set(0)
        failures[error.metricLabel]?.add()
    }
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
