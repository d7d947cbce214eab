import Ingest
import Load
import Platform
import Spool

/// Joins `?ack=stored` to the loader.
final class StoredResults: StoredWaiter {
    let notifier = StoredNotifier()

    func announce() { notifier.announce() }

    func withdraw() { notifier.withdraw() }

    func whenStored(
        _ mark: SpoolMark, timeoutMilliseconds: Int,
        _ completion: @escaping @Sendable (StoredCounts?) -> Void
    ) {
        notifier.wait(for: mark, until: Clock.deadline(inMilliseconds: timeoutMilliseconds)) {
            counts in
            completion(
                counts.map {
                    StoredCounts(
                        accepted: $0.stored, duplicates: $0.duplicate, conflicts: $0.conflict,
                        deadLettered: $0.deadLettered)
                })
        }
    }
}
