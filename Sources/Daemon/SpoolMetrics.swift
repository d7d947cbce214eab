import Metrics
import Spool

/// The spool as metrics.
enum SpoolMetrics {
    static func register(_ spool: Spool, in registry: Registry, bytesMax: Int) {
        typealias Number = KeyPath<SpoolStatistics, Int> & Sendable
        let gauges: [(String, String, Number)] = [
            ("bytes", "Bytes of all segments, loaded ones included", \.bytes),
            ("unloaded_bytes", "Bytes that wait to be loaded", \.unloadedBytes),
            ("segments", "Segments on disk", \.segments),
            ("quarantined_records", "Records that could not be read", \.quarantinedRecords),
            ("missing_segments", "Segments that were gone at their reading", \.missingSegments),
            ("torn_tails", "Torn tails cut off at start, never acknowledged", \.tornTails),
        ]
        for (name, help, number) in gauges {
            registry.gauge("tapline_spool_\(name)", help) {
                Double(spool.statistics[keyPath: number])
            }
        }
        typealias Total = KeyPath<SpoolStatistics, UInt64> & Sendable
        let totals: [(String, String, Total)] = [
            ("records_pushed", "Records taken for appending", \.pushedRecords),
            ("records_popped", "Records whose appending ended, well or not", \.poppedRecords),
            ("syncs", "Groups made durable, one sync each", \.syncs),
            ("failures", "Writes and syncs that failed", \.failures),
        ]
        for (name, help, total) in totals {
            registry.counter("tapline_spool_\(name)_total", help) {
                Double(spool.statistics[keyPath: total])
            }
        }
        registry.gauge("tapline_spool_bytes_max", "Limit of unloaded bytes; beyond it 503") {
            Double(bytesMax)
        }
    }
}
