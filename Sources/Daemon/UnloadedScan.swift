import Event
import Load
import Platform
import Spool
import Synchronization

/// Counts what an earlier run left in the spool, so that the terms of law 4 survive a restart.
///
/// It reads the records between the checkpoint and the end that the spool had when it was opened,
/// on a thread of its own, as a backlog may be large. Later ones are counted as they come.
final class UnloadedScan: Sendable {
    private let spool: Spool
    private let directory: String
    private let isStarted = Atomic(false)

    init(spool: Spool, directory: String) {
        self.spool = spool
        self.directory = directory
    }

    /// Starts the count at the first call; later ones do nothing.
    func start(from checkpoint: SpoolMark?, _ ledger: Ledger) {
        guard !isStarted.exchange(true, ordering: .acquiringAndReleasing) else { return }
        guard spool.endAtOpening.segment > 0 else { return }
        Thread.start(name: "spool-count") { [self] in
            do throws(SpoolError) {
                try SpoolFiles.scan(directory: directory, from: checkpoint) { record in
                    guard record.mark <= spool.endAtOpening,
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
