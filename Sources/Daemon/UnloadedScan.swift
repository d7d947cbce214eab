import Event
import Load
import Platform
import Spool

/// Counts what an earlier run left in the spool, so that the terms of law 4 survive a restart.
///
/// It reads the records between the checkpoint and the end that the spool had when it was opened,
/// on a thread of its own, as a backlog may be large. Later ones are counted as they come. When the spool
/// has taken a new id, what was loaded under the old one is counted once more, as it is loaded again.
final class UnloadedScan: Sendable {
    private let spool: Spool
    private let directory: String
    /// Whose records are counted.
    private let counted = Sync.Monitor<SpoolID?>(nil)

    init(spool: Spool, directory: String) {
        self.spool = spool
        self.directory = directory
    }

    /// Starts the count, at the first call for an id of the spool; others do nothing.
    func start(from checkpoint: SpoolMark?, _ ledger: Ledger) {
        let id = spool.id
        let before = counted.withLock { counted in
            defer { counted = id }
            return counted
        }
        guard before != id else { return }
        let end = before == nil ? spool.endAtOpening : spool.loadedEnd
        guard end.segment > 0 else { return }
        Thread.start(name: "spool-count") { [self] in
            do throws(SpoolError) {
                try SpoolFiles.scan(directory: directory, from: checkpoint) { record in
                    guard record.mark <= end,
                        let body = try? BodyRecord(payload: record.payload)
                    else { return }
                    ledger.noteDurable(received: body.received, rejected: body.rejected)
                }
            } catch {
                Log.warn("could not count what is spooled: \(error)")
            }
        }
    }
}
