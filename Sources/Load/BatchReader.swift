import Event
import Platform
import Spool

/// The thread that reads the spool ahead of the loader: while one batch is loaded, the next one is
/// filled.
///
/// It serves one session: it begins at the checkpoint of that session and is ended with it. Two
/// batches go to and fro, the loader's and the one that grows here, so memory is bounded. What closed
/// segments hold of a batch that is full is asked here, too, while it waits. All calls are safe from any
/// thread; ``end()`` has to be called in the end.
final class BatchReader: Sendable {
    /// Why no more records come.
    private enum End: Sendable {
        /// All that was durable is read, after ``drain()``.
        case drained
        case failed(LoadError)
    }

    private struct State: ~Copyable {
        /// The batch that grows.
        var next = LoadBatch()
        /// When its first record has waited long enough; it grows on until somebody takes it.
        var due: Microseconds = 0
        /// Whether closed segments have been asked about it.
        var isAsked = false
        var isDraining = false
        var isEnding = false
        var end: End?
    }

    private let spool: Spool
    private let settings: LoadSettings
    private let metrics: LoadMetrics
    private let makeLookAhead: (@Sendable () -> LookAhead)?
    /// The reader's number in the spool.
    private let number: UInt64
    private let state = Sync.Monitor(State())
    private let thread = Sync.Monitor<Thread?>(nil)

    /// Starts to read.
    ///
    /// - Parameters:
    ///   - checkpoint: Where to begin; nil begins at the oldest segment.
    ///   - lookAhead: Makes what asks closed segments; called on the thread.
    /// - Throws: ``LoadError/otherHistory`` when the checkpoint is not of this spool's history, or
    ///   ``LoadError/spool(_:)``; nothing is started then.
    init(
        _ spool: Spool, from checkpoint: SpoolMark?, settings: LoadSettings, metrics: LoadMetrics,
        lookAhead: (@Sendable () -> LookAhead)? = nil
    ) throws(LoadError) {
        let reader: SpoolReader
        do throws(SpoolError) {
            reader = try spool.makeReader(from: checkpoint)
        } catch .notThisSpool {
            throw .otherHistory
        } catch {
            throw .spool(error)
        }
        self.spool = spool
        self.settings = settings
        self.metrics = metrics
        makeLookAhead = lookAhead
        number = reader.reader
        // Handed to the thread, to which it belongs from then on.
        let handed = Sync.Monitor<SpoolReader?>(reader)
        thread.withLock {
            $0 = Thread.start(name: "loader-read", niceness: Thread.behindAnswers) { [self] in
                if let reader = handed.withLock({ $0.take() }) { run(reader) }
            }
        }
    }

    /// Takes the batch that is waiting: at once if it is full or nothing follows it, else when its
    /// first record has waited long enough.
    ///
    /// - Parameter batch: Is emptied, and its memory used for the next one.
    /// - Returns: False when all is taken after ``drain()``. True leaves the batch empty if there was
    ///   no record for a quarter of a second.
    /// - Throws: Why the spool cannot be read on, after all before that was taken.
    func take(_ batch: inout LoadBatch) throws(LoadError) -> Bool {
        batch.removeAll()
        let due = state.wait(until: Clock.deadline(inMilliseconds: 250)) { state -> Microseconds? in
            if !state.next.isEmpty { return state.due }
            return state.end == nil ? nil : 0
        }
        guard let due else { return true }
        _ = state.wait(until: due) { state in
            state.end != nil || settings.isFull(state.next) ? true : nil
        }
        var end: End?
        let isTaken = state.wait(until: Clock.deadline(inMilliseconds: 250)) { state -> Bool? in
            // What is asked for here is there sooner than what the loader would ask for.
            if state.end == nil, isToBeAsked(state) { return nil }
            swap(&state.next, &batch)
            state.isAsked = false
            end = batch.isEmpty ? state.end : nil
            return true
        }
        guard isTaken != nil else { return true }
        state.broadcast()
        switch end {
        case nil: return true
        case .drained: return false
        case .failed(let error): throw error
        }
    }

    /// Reads what is durable and then no more.
    func drain() {
        state.withLock { $0.isDraining = true }
        state.broadcast()
        spool.hurry(reader: number)
    }

    /// Ends the thread and waits for it; what was read and not taken is dropped.
    func end() {
        state.withLock { $0.isEnding = true }
        state.broadcast()
        spool.hurry(reader: number)
        thread.withLock { $0 }?.join()
    }

    /// Rows that wait to be taken.
    var rowsWaiting: Int { state.withLock { $0.next.count } }

    // MARK: The thread

    private func run(_ reader: SpoolReader) {
        var end = End.drained
        var lookAhead = makeLookAhead?()
        do throws(LoadError) {
            while try takeRecord(of: reader, &lookAhead) {}
        } catch {
            end = .failed(error)
        }
        state.withLock { $0.end = end }
        state.broadcast()
    }

    private enum Task {
        case read
        case drain
        /// To ask closed segments about the batch.
        case ask
        case end
    }

    /// Waits until the batch has room, then adds the next record to it.
    ///
    /// - Returns: False when there is nothing more to do.
    private func takeRecord(
        of reader: SpoolReader, _ lookAhead: inout LookAhead?
    ) throws(LoadError) -> Bool {
        let task = state.wait { state -> Task? in
            if state.isEnding { return .end }
            if isToBeAsked(state) { return .ask }
            if settings.isFull(state.next) { return nil }
            return state.isDraining ? .drain : .read
        }
        if task == .end { return false }
        if task == .ask {
            ask(&lookAhead)
            return true
        }
        let record: SpoolRecord?
        do throws(SpoolError) {
            // Draining and ending cut it short.
            record = try reader.next(timeoutMilliseconds: 60_000)
        } catch {
            throw .spool(error)
        }
        // Only what came after the call to drain says that nothing was left then.
        guard let record else { return task == .read }
        try append(record)
        return true
    }

    /// Whether closed segments are to be asked about the batch before it is taken.
    private func isToBeAsked(_ state: borrowing State) -> Bool {
        makeLookAhead != nil && !state.isAsked && settings.isFull(state.next)
    }

    /// Asks closed segments about the batch, which is full: nothing is added to it, and until this is done it
    /// is not taken.
    private func ask(_ lookAhead: inout LookAhead?) {
        let (events, contents) = state.withLock { ($0.next.events, $0.next.contents) }
        var inquiry = lookAhead?.inquire(events, contents)
        state.withLock { state in
            state.isAsked = true
            state.next.inquiry = inquiry.take()
        }
        state.broadcast()
    }

    private func append(_ record: SpoolRecord) throws(LoadError) {
        do throws(BodyRecord.Failure) {
            let isNews = try state.withLock { state throws(BodyRecord.Failure) in
                let isFirst = state.next.isEmpty
                try state.next.append(record)
                if isFirst {
                    state.due = Clock.deadline(inMilliseconds: settings.batchAgeMilliseconds)
                }
                return isFirst || settings.isFull(state.next)
            }
            // The loader waits for the first record and for a full batch, not for each record.
            if isNews { state.broadcast() }
        } catch {
            metrics.unreadable.add()
            Log.error(
                "record before offset \(record.mark.offset) of spool segment "
                    + "\(record.mark.segment) cannot be read: \(error)",
                hint: "Its checksum is right, so it was written by another version.")
            throw .unreadable(record.mark)
        }
    }
}
