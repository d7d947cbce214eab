import Platform
import Synchronization

/// The durable queue between acknowledging events and loading them.
///
/// A record is acknowledged by its completion, which runs after the sync. The directory belongs to
/// one daemon. All calls are safe from any thread; the format is in SpoolFormat.swift.
package final class Spool: Sendable {
    let directory: SpoolDirectory
    let options: SpoolOptions
    let index: Sync.Monitor<SegmentIndex>
    let quarantine: Quarantine
    private let queue = Sync.Monitor(CommitQueue())
    private let identity: Sync.Monitor<SpoolIdentity>
    private let lock: Sync.Monitor<FileLock?>
    private let committer = Sync.Monitor<Thread?>(nil)
    /// Where the spool ended when it was opened, after its torn tail was cut off. Its chain is not
    /// kept: it is for comparing only.
    package let endAtOpening: SpoolMark
    // Kept beside the index so that appending takes one lock only.
    private let unloadedBytes = Atomic(0)

    /// Opens the spool of a directory, creating what is missing.
    ///
    /// A torn tail is cut off and counted. It takes milliseconds at any size: older segments are
    /// checked while they are read. ``close()`` has to be called in the end.
    ///
    /// - Throws: ``SpoolError/locked(directory:)`` when another daemon has it,
    ///   ``SpoolError/unsupportedVersion(_:path:)``, or that a file cannot be read or written.
    package init(
        directory path: String, options: SpoolOptions = SpoolOptions()
    ) throws(SpoolError) {
        let directory = SpoolDirectory(path: path)
        let taken = try rethrow { () throws(SystemError) -> FileLock? in
            try Directory.create(path)
            return try FileLock.tryTake(directory.lock)
        }
        guard let taken else { throw .locked(directory: path) }
        lock = .init(taken)
        let found = try SpoolRecovery(directory: directory, storage: options.storage)
        identity = .init(try Self.identify(directory, found, options.storage))
        endAtOpening = SpoolMark(
            segment: found.segments.last?.number ?? 0,
            offset: UInt64(found.segments.last?.bytes ?? 0), chain: 0)
        quarantine = Quarantine(directory: directory, storage: options.storage)
        var index = SegmentIndex(
            segments: found.segments, end: found.end, released: found.released)
        index.statistics.tornTails = found.tornTails
        index.statistics.tornTailBytes = found.tornTailBytes
        let kept = try rethrow { [quarantine] () throws(SystemError) in try quarantine.count() }
        index.add(quarantined: kept)
        unloadedBytes.store(index.unloadedBytes, ordering: .relaxed)
        self.index = .init(index)
        self.directory = directory
        self.options = options
        let thread = Thread.start(name: "spool-commit", isPrompt: true) { [self] in runCommitter() }
        committer.withLock { $0 = thread }
    }

    private static func identify(
        _ directory: SpoolDirectory, _ found: SpoolRecovery, _ storage: SpoolStorage
    ) throws(SpoolError) -> SpoolIdentity {
        try rethrow { () throws(SystemError) in
            if let identity = try SpoolIdentity.load(directory.identity) { return identity }
            // With another epoch the loader starts from the oldest segment, which is harmless.
            let identity = SpoolIdentity(id: found.newestID ?? .random(), epoch: .random())
            if !found.segments.isEmpty {
                Log.error(
                    "identity of the spool lost; all of it will be loaded again",
                    hint: "Nothing has to be done: events that are stored count as duplicates.",
                    ["path": directory.identity, "id": "\(identity.id)"])
            }
            try identity.save(directory.identity, storage)
            return identity
        }
    }

    // MARK: Identity

    /// The random id by which the database keeps this spool's checkpoint.
    package var id: SpoolID { identity.withLock { $0.id } }

    /// What fences the checkpoint: a restored database or a cloned machine has another.
    package var epoch: SpoolID { identity.withLock { $0.epoch } }

    /// Takes a new random id, durably: this is the clone of another machine.
    ///
    /// - Throws: ``SpoolError``; the id is then unchanged.
    package func resetID() throws(SpoolError) { try change { $0.id = .random() } }

    /// Sets the epoch, durably.
    ///
    /// - Throws: ``SpoolError``; the epoch is then unchanged.
    package func setEpoch(_ epoch: SpoolID) throws(SpoolError) { try change { $0.epoch = epoch } }

    private func change(_ body: (inout SpoolIdentity) -> Void) throws(SpoolError) {
        try identity.withLock { identity throws(SpoolError) in
            var new = identity
            body(&new)
            try rethrow { () throws(SystemError) in
                try new.save(directory.identity, options.storage)
            }
            identity = new
        }
    }

    // MARK: Appending

    /// Queues a record; it becomes durable with its group.
    ///
    /// - Parameters:
    ///   - payload: The record.
    ///   - events: How many events it holds, to count them if it can ever not be read.
    ///   - completion: Runs once on the committer thread: after the sync with the position of the
    ///     record, or with ``SpoolError/noSpace(_:)`` or ``SpoolError/failed(_:)``, and then it
    ///     is not stored. It must not block, nor close the spool.
    /// - Throws: ``SpoolError/full(bytes:limit:)``, ``SpoolError/tooLarge(bytes:limit:)`` or
    ///   ``SpoolError/closing``; the completion then never runs.
    package func append(
        _ payload: [UInt8], events: Int,
        completion: @escaping @Sendable (Result<SpoolMark, SpoolError>) -> Void
    ) throws(SpoolError) {
        guard payload.count <= options.recordBytesMax else {
            throw .tooLarge(bytes: payload.count, limit: options.recordBytesMax)
        }
        let append = PendingAppend(payload: payload, events: events, completion: completion)
        var saysFull = false
        let isFirst: Bool
        do throws(SpoolError) {
            isFirst = try queue.withLock { queue throws(SpoolError) in
                guard !queue.isClosing else { throw .closing }
                let waiting = unloadedBytes.load(ordering: .relaxed) + queue.bytes
                guard waiting + append.bytes <= options.bytesMax else {
                    saysFull = queue.shouldSayFull(now: Clock.monotonic())
                    throw .full(bytes: waiting, limit: options.bytesMax)
                }
                queue.push(append)
                return queue.pending.count == 1
            }
        } catch {
            if saysFull {
                Log.error(
                    "\(error); bodies are refused with 503",
                    hint: "See why the database does not take events; or raise spool.bytes_max.")
            }
            throw error
        }
        // With more than one queued the committer is at work, or already woken.
        if isFirst { queue.broadcast() }
    }

    private func runCommitter() {
        var writer: SegmentWriter?
        while let group = queue.wait(for: { queue in queue.take() }), !group.isEmpty {
            commit(group, &writer)
            queue.withLock { $0.finish(group) }
        }
        endSegment(&writer)
    }

    /// Completes the growing segment, if there is one.
    private func endSegment(_ writer: inout SegmentWriter?) {
        guard let last = writer.take() else { return }
        let bytes = last.end()
        index.withLock { $0.end(bytes: bytes) }
        index.broadcast()
    }

    /// Writes and syncs what was queued: in one group, but for the ends of segments.
    private func commit(_ appends: [PendingAppend], _ writer: inout SegmentWriter?) {
        if writer?.id != id { endSegment(&writer) }
        var rest = appends[...]
        while let first = rest.first {
            if let full = writer?.position, full > SegmentHeader.bytes,
                full + first.bytes > options.segmentBytesMax
            {
                endSegment(&writer)
            }
            do throws(SystemError) {
                if writer == nil { writer = try makeWriter() }
            } catch {
                // What no segment can be made for fails together, or each would try alone.
                return fail(rest, error)
            }
            var end = rest.startIndex
            var size = writer?.position ?? 0
            repeat {
                size += rest[end].bytes
                end += 1
            } while end < rest.endIndex && size + rest[end].bytes <= options.segmentBytesMax
            let group = rest[..<end]
            rest = rest[end...]
            do throws(SystemError) {
                try commitGroup(group, &writer)
            } catch {
                if let failed = writer.take() {
                    let bytes = failed.abandon()
                    index.withLock { $0.end(bytes: bytes) }
                }
                fail(group, error)
            }
        }
    }

    private func makeWriter() throws(SystemError) -> SegmentWriter {
        let (number, previous) = index.withLock { $0.takeNumber() }
        let writer = try SegmentWriter(
            directory: directory, number: number, previous: previous, id: id,
            storage: options.storage)
        index.withLock { $0.begin(number) }
        return writer
    }

    private func commitGroup(
        _ group: ArraySlice<PendingAppend>, _ writer: inout SegmentWriter?
    ) throws(SystemError) {
        let start = Clock.monotonic()
        var marks: [SpoolMark] = []
        marks.reserveCapacity(group.count)
        var events = 0
        var bytes = 0
        for append in group {
            if let mark = try writer?.append(append.payload, events: append.events) {
                marks.append(mark)
            }
            events += append.events
            bytes += append.bytes
        }
        try writer?.sync()
        let synced = writer?.synced ?? 0
        let wasDegraded = index.withLock { index in
            index.publish(bytes: synced, end: marks.last)
            index.statistics.syncs += 1
            index.statistics.syncedRecords += UInt64(group.count)
            index.statistics.syncedEvents += UInt64(events)
            index.statistics.syncedBytes += UInt64(bytes)
            unloadedBytes.store(index.unloadedBytes, ordering: .relaxed)
            // Under the lock: whoever has read a record does not find it among the queued ones still.
            queue.withLock { $0.settle(bytes: bytes) }
            defer { index.statistics.degradedReason = nil }
            return index.statistics.degradedReason != nil
        }
        index.broadcast()
        if wasDegraded { Log.info("spool can append again") }
        options.didSync(Double(Clock.monotonic() - start) / 1e6, group.count)
        Failpoint.reach("spool.answer.before")
        for (append, mark) in zip(group, marks) { append.completion(.success(mark)) }
    }

    private func fail(_ appends: ArraySlice<PendingAppend>, _ cause: SystemError) {
        let error = SystemError(
            code: cause.code, action: "append to spool segment", path: cause.path)
        queue.withLock { $0.settle(bytes: appends.reduce(0) { $0 + $1.bytes }) }
        let wasDegraded = index.withLock { index in
            index.statistics.failures += 1
            defer { index.statistics.degradedReason = "\(error)" }
            return index.statistics.degradedReason != nil
        }
        index.broadcast()
        if !wasDegraded {
            let remedy =
                cause.isOutOfSpace
                ? "Free space on the disk, or lower spool.keep_bytes."
                : "See what is wrong with the disk."
            Log.error(
                "\(error)",
                hint: remedy + " Nothing of it is acknowledged; senders keep it and try again.",
                ["call": cause.action, "records": "\(appends.count)"])
        }
        for append in appends { append.completion(.failure(SpoolError(error))) }
    }

    // MARK: Releasing

    /// Notes that the database has committed everything up to a mark.
    ///
    /// Loaded segments are deleted when they are older than `keepSeconds` or exceed `keepBytes`,
    /// never the one with the mark, nor one that a reader has still to read. Call it once after
    /// the start, too, and now and then when nothing is loaded, so that old ones go.
    package func released(upTo mark: SpoolMark) {
        let now = options.now()
        let (before, after, loaded, expired) = index.withLock { index in
            let before = index.released.segment
            let loaded = index.release(upTo: mark, now: now)
            let expired = index.takeExpired(
                now: now, keepSeconds: options.keepSeconds, keepBytes: options.keepBytes)
            unloadedBytes.store(index.unloadedBytes, ordering: .relaxed)
            return (before, index.released.segment, loaded, expired)
        }
        do throws(SystemError) {
            if after != before {
                try ReleasedFile.save(after, directory.released, options.storage)
            }
            // The time of a loaded file is the time of its loading, for the next start.
            for number in loaded where !expired.contains(number) {
                try File(directory.segment(number), .readWrite).touch()
            }
            Failpoint.reach("spool.release")
            for number in expired {
                try options.storage.remove(directory.segment(number))
                Failpoint.reach("spool.delete")
            }
        } catch {
            Log.warn("\(error)")
        }
    }

    /// Up to where everything was loaded once. Its chain is not kept: it is for comparing only.
    package var loadedEnd: SpoolMark {
        let released = index.withLock { $0.released }
        return SpoolMark(segment: released.segment, offset: UInt64(released.offset), chain: 0)
    }

    // MARK: State

    /// The numbers for metrics and `tapline top`.
    package var statistics: SpoolStatistics {
        let (pushed, popped) = queue.withLock { ($0.pushed, $0.popped) }
        return index.withLock { index in
            var statistics = index.statistics
            statistics.pushedRecords = pushed
            statistics.poppedRecords = popped
            statistics.bytes = index.segments.reduce(0) { $0 + $1.bytes }
            statistics.unloadedBytes = index.unloadedBytes
            statistics.segments = index.segments.count
            return statistics
        }
    }

    /// Ends appending, waits until what is queued is durable, and gives up the lock.
    ///
    /// Readers read on to the end of what is there and then throw ``SpoolError/closing``.
    package func close() {
        queue.withLock { $0.isClosing = true }
        queue.broadcast()
        committer.withLock { $0 }?.join()
        index.withLock { $0.isClosed = true }
        index.broadcast()
        lock.withLock { $0 = nil }
    }
}
