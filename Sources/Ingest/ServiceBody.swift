import Event
import Gzip
import HTTPServer
import JSONLines
import Platform
import Spool

/// Takes one body: inflates it, and at its end decodes, spools and answers it.
///
/// What comes gzipped is kept as it comes, and inflated when all of it is here: into memory that the body
/// before has just left, and with the tables of one stream instead of one for each connection.
///
/// Decoding runs on the HTTP thread: it costs about as much as receiving the same bytes, and handing
/// each body to another thread and back would cost small ones more than it saves large ones. Where
/// one thread is not enough, the server is given more, and each decodes what it receives.
///
/// But all connections of an HTTP thread wait while it is at one body. So threads for large bodies
/// (``IngestService/largeBodies``) inflate and read one that is large, as it came or as its end says that it
/// is. One that lies of it is inflated on the HTTP thread up to ``largeBytes``, and by them from there on.
final class ServiceBody: BodySink, @unchecked Sendable {
    private let service: IngestService
    private let exchange: Exchange
    /// Nil when the body is to name it.
    private let app: [UInt8]?
    private let key: [UInt8]
    private let head: EventsHead
    private let call: (any DialectCall)?
    private let bytesMax: Int
    /// What all bodies of this kind hold, and may hold.
    private let inFlight: ByteBudget
    private let inFlightBytesMax: Int
    /// Inflated bytes of a body up to which the HTTP thread does all of it: two milliseconds' work.
    static let largeBytes = 512 << 10
    /// Bytes of a gzipped body that is not large; one of 1000 events has fewer.
    static let largeGzipBytes = 128 << 10
    /// How much of a large body is inflated before it is counted and others may go first.
    static let stepBytes = 128 << 10

    // Used by one server thread only; after the end of a large body, by the thread that reads it.
    private var inflater: InflateStream?
    private var bytes: [UInt8] = []
    /// What has come and is not inflated yet.
    private var unread: [UInt8] = []
    private var isLarge = false
    /// Bytes that are counted: in all that is in flight, in what large bodies hold, and as inflated.
    private var held = 0
    private var heldLarge = 0
    private var counted = 0
    private var isRefused = false
    private var complaint: String?
    private var token: String?
    private var appOfEvents: [UInt8] = []

    /// - Parameters:
    ///   - app: Nil for a request without a key, whose body names an app by its alias.
    ///   - call: What a source asks for; nil for our own NDJSON and JSON.
    init(
        _ service: IngestService, _ exchange: Exchange, app: [UInt8]?, key: [UInt8],
        head: EventsHead, call: (any DialectCall)? = nil
    ) {
        self.service = service
        self.exchange = exchange
        self.app = app
        self.key = key
        self.head = head
        self.call = call
        let settings = service.settings
        if app == nil {
            inFlight = service.metrics.inFlightWithoutKey
            inFlightBytesMax = settings.inFlightWithoutKeyBytesMax
            // Whoever has no key is let in for calls of a line or two.
            bytesMax = min(settings.lineBytesMax, settings.bodyBytesMax, inFlightBytesMax)
        } else {
            inFlight = service.metrics.inFlight
            inFlightBytesMax = settings.inFlightBytesMax
            bytesMax = settings.bodyBytesMax
        }
    }

    func receive(_ piece: Span<UInt8>) {
        if isRefused { return }
        do throws(ServiceRefusal) {
            try take(piece)
        } catch {
            refuse(error)
        }
    }

    private func take(_ piece: Span<UInt8>) throws(ServiceRefusal) {
        if head.isGzip {
            // More than a network's packet is most often a part of much more.
            if unread.isEmpty {
                unread.reserveCapacity(piece.count < 4096 ? piece.count : Self.largeGzipBytes)
            }
            unsafe piece.withUnsafeBufferPointer { unsafe unread.append(contentsOf: $0) }
            isLarge = unread.count > Self.largeGzipBytes
        } else {
            if bytes.capacity == 0 { bytes = service.buffers.take() }
            unsafe piece.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
            // Text never begins with these, so the first look at them is enough.
            if held < 2, Gzip.isGzip(bytes.span) { throw .gzipWithoutHeader }
            isLarge = bytes.count > Self.largeBytes
        }
        guard max(bytes.count, unread.count) <= bytesMax else {
            throw app == nil
                ? .tooLargeWithoutKey(limit: bytesMax)
                : .bodyTooLarge(service.settings, bytes: nil)
        }
        try count()
    }

    /// Inflates a whole gzipped body until it is large, which is as much as the HTTP thread does; nothing of
    /// one that says itself that it is, as a bomb does.
    private func inflateWhole() throws(ServiceRefusal) {
        isLarge = lengthAtEnd > Self.largeBytes
        if isLarge { return }
        try beginToInflate()
        let kept = unread
        unread = []
        let used = try inflate(kept.span, upTo: Self.largeBytes)
        isLarge = bytes.count >= Self.largeBytes
        if used < kept.count { unread = Array(kept[used...]) }
    }

    private func beginToInflate() throws(ServiceRefusal) {
        if inflater != nil { return }
        bytes = service.buffers.take()
        do throws(GzipError) {
            inflater = try InflateStream(limit: bytesMax)
        } catch {
            throw refusal(error)
        }
    }

    private func inflate(
        _ piece: Span<UInt8>, upTo countMax: Int
    ) throws(ServiceRefusal) -> Int {
        do throws(GzipError) {
            return try inflater?.push(piece, into: &bytes, upTo: countMax) ?? piece.count
        } catch {
            throw refusal(error)
        }
    }

    /// Counts what the body holds now.
    private func count() throws(ServiceRefusal) {
        // Of what a large body has reserved, only what has come is more than a claim on memory.
        let kept = max(unread.count, min(unread.capacity, Self.largeGzipBytes))
        let new = bytes.count + kept - held
        held += new
        let total = inFlight.add(new)
        service.metrics.inflatedBytes.add(bytes.count - counted)
        counted = bytes.count
        guard total <= inFlightBytesMax else {
            throw .tooMuchInFlight(bytes: total, limit: inFlightBytesMax)
        }
        if isLarge { try countLarge() }
    }

    /// Large bodies wait for their threads, so they may not have what others need meanwhile.
    private func countLarge() throws(ServiceRefusal) {
        let total = service.metrics.inFlightLarge.add(held - heldLarge)
        heldLarge = held
        let limit = service.settings.inFlightLargeBytesMax
        guard total <= limit else { throw .tooMuchInFlight(bytes: total, limit: limit) }
    }

    func finished() {
        if isRefused { return }
        if head.isGzip, !isLarge {
            do throws(ServiceRefusal) {
                try inflateWhole()
                try count()
            } catch {
                return refuse(error)
            }
        }
        guard isLarge else { return end() }
        service.metrics.largeBodies.add()
        if !service.largeBodies.give({ self.readLarge() }, of: key) { refuse(.draining) }
    }

    /// Does what the HTTP thread has left undone.
    private func readLarge() {
        // The end of the server has refused it meanwhile.
        if exchange.isClosed { return release() }
        do throws(ServiceRefusal) {
            try inflateRest()
        } catch {
            return refuse(error)
        }
        end()
    }

    /// The inflated length that the end of the last member of a gzipped body states: no more than a hint at
    /// what is to come.
    private var lengthAtEnd: Int { unread.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) } }

    private func inflateRest() throws(ServiceRefusal) {
        guard head.isGzip else { return }
        try beginToInflate()
        bytes.reserveCapacity(min(max(lengthAtEnd, bytes.count), bytesMax))
        let rest = unread
        var used = 0
        repeat {
            used += try inflate(rest.span.extracting(used...), upTo: bytes.count + Self.stepBytes)
            try count()
            service.largeBodies.standBack()
        } while used < rest.count || inflater?.isPaused == true
        unread = []
    }

    private func end() {
        do throws(ServiceRefusal) {
            try store(try parse())
        } catch {
            refuse(error)
        }
    }

    func aborted() { release() }

    private func parse() throws(ServiceRefusal) -> ParsedBody {
        if head.isGzip {
            do throws(GzipError) {
                try inflater?.finish()
            } catch {
                throw refusal(error)
            }
            inflater = nil
        }
        var body: [UInt8] = []
        swap(&body, &bytes)
        guard let call else {
            let parsed = try decode(body, head.format, app ?? [])
            service.buffers.give(consume body)
            return parsed
        }
        var lines = DialectLines(countMax: service.settings.linesMax)
        try call.read(SourceJSON(body), into: &lines)
        service.buffers.give(consume body)
        if lines.isOver { throw .tooManyLines(service.settings, lines: nil) }
        complaint = lines.complaint
        let app = try service.app(app, vendorApp: lines.vendorApp)
        appOfEvents = app
        if let device = call.deviceOfToken {
            // Before anything is durable: without the token the device could not go on.
            token = service.keys.issueToken(app: app, device: device)
            guard token != nil else { throw .keysUnavailable }
        }
        return try decode(lines.bytes, .elements(lines.ranges), app)
    }

    private func decode(
        _ bytes: [UInt8], _ format: BodyFormat, _ app: [UInt8]
    ) throws(ServiceRefusal) -> ParsedBody {
        let workers = service.largeBodies
        let parsed = try service.parser.parse(
            bytes, format: format, app: app, receivedAt: exchange.receivedAt, sentAt: head.sentAt,
            standBack: isLarge ? { workers.standBack() } : nil)
        service.rates.charge(key, events: parsed.received)
        return parsed
    }

    private func store(_ body: ParsedBody) throws(ServiceRefusal) {
        var body = body
        guard let record = body.record else {
            acknowledge(body, stored: head.waitsForStored ? StoredCounts.zero : nil)
            return
        }
        body.record = nil
        let waiter = head.waitsForStored ? service.storedWaiter : nil
        let followed = service.tap?.isOpen == true ? record : nil
        waiter?.announce()
        do throws(SpoolError) {
            try service.spool.append(record, events: body.accepted) { [body] result in
                if case .success = result, let followed { self.service.tap?.take(followed) }
                self.becameDurable(body, result)
            }
        } catch {
            waiter?.withdraw()
            throw service.refusal(error)
        }
    }

    /// Runs on the committer's thread.
    private func becameDurable(_ body: ParsedBody, _ result: Result<SpoolMark, SpoolError>) {
        switch result {
        case .failure(let error):
            if head.waitsForStored { service.storedWaiter?.withdraw() }
            refuse(service.refusal(error))
        case .success(let mark):
            service.spoolWorks()
            service.metrics.count(body)
            service.onDurable(body.received, body.received - body.accepted)
            guard head.waitsForStored, let waiter = service.storedWaiter else {
                acknowledge(body, stored: nil)
                return
            }
            let timeout = service.settings.storedTimeoutMilliseconds
            waiter.whenStored(mark, timeoutMilliseconds: timeout) { counts in
                if let counts {
                    self.acknowledge(body, stored: counts)
                } else {
                    self.refuse(
                        ServiceRefusal(
                            503, "not_stored_yet",
                            "the events are durable and will be stored, but the database did not "
                                + "answer in \(timeout) ms",
                            retryAfter: ServiceRefusal.jittered(5)))
                }
            }
        }
    }

    private func acknowledge(_ body: ParsedBody, stored: StoredCounts?) {
        let elapsed = Clock.now() - exchange.receivedAt
        service.metrics.acknowledgeSeconds.observe(Double(max(0, elapsed)) / 1_000_000)
        release()
        service.answer(
            exchange,
            call?.answer(
                DialectOutcome(
                    body: body, complaint: complaint, token: token,
                    categories: service.keys.categories(app: appOfEvents)))
                ?? ServiceAnswer.response(to: body, stored: stored, isStrict: head.isStrict))
    }

    private func refuse(_ refusal: ServiceRefusal) {
        isRefused = true
        release()
        service.refuse(exchange, refusal, call)
    }

    /// Gives back what the body holds. Comes once from whichever thread ends the body.
    private func release() {
        inFlight.release(held)
        service.metrics.inFlightLarge.release(heldLarge)
        held = 0
        heldLarge = 0
        bytes = []
        unread = []
        inflater = nil
    }

    private func refusal(_ error: GzipError) -> ServiceRefusal {
        switch error {
        case .tooLarge:
            app == nil
                ? .tooLargeWithoutKey(limit: bytesMax) : .inflatedTooLarge(service.settings)
        case .outOfMemory:
            ServiceRefusal(
                503, "out_of_memory", "\(error)", retryAfter: ServiceRefusal.jittered(2))
        case .notGzip, .truncated, .corrupt, .trailingGarbage: .badGzip("\(error)")
        }
    }
}

extension StoredCounts {
    fileprivate static let zero = StoredCounts(
        accepted: 0, duplicates: 0, conflicts: 0, deadLettered: 0)
}
