import Event
import JSONLines
import Platform

/// One body, decoded.
struct ParsedBody: Sendable {
    /// A rejected line that the answer lists.
    struct LineError: Sendable {
        /// The physical line, or the element, from 1.
        var line: Int
        var rejection: Rejection
    }

    /// Lines with an event, good or bad.
    var received = 0
    var rejected = 0
    var errors: [LineError] = []
    var rejectedByCode: [RejectionCode: Int] = [:]
    /// Accepted lines in which something was replaced.
    var sanitized = 0
    /// The spool record; nil when nothing was received.
    var record: [UInt8]?

    var accepted: Int { received - rejected }
}

/// How a body is cut into events.
enum BodyFormat: Sendable {
    case lines
    case json
    /// At these places, which a dialect wrote.
    case elements([Range<Int>])
}

/// Decodes whole bodies. Safe from any thread; a decoder is kept for each that is at work.
final class BodyParser: Sendable {
    private let settings: ServiceSettings
    private let decoders = Sync.Monitor<[Decoder]>([])

    init(_ settings: ServiceSettings) { self.settings = settings }

    /// Decodes a body.
    ///
    /// - Parameter standBack: Lets others go first; called after each ``ServiceBody/stepBytes``.
    /// - Throws: ``ServiceRefusal`` when the body is refused as a whole.
    func parse(
        _ bytes: [UInt8], format: BodyFormat, app: [UInt8], receivedAt: Int64, sentAt: Int64?,
        standBack: (() -> Void)? = nil
    ) throws(ServiceRefusal) -> ParsedBody {
        let decoder =
            decoders.withLock { $0.popLast() } ?? Decoder(lineBytesMax: settings.lineBytesMax)
        defer { decoders.withLock { $0.append(decoder) } }
        // A row is longer than its line, most often by less than half; what is not written costs nothing.
        var work = Work(
            parser: self, app: app, receivedAt: receivedAt, sentAt: sentAt,
            capacity: bytes.count + bytes.count / 2, standBack: standBack)
        let sanitizedBefore = decoder.events.sanitized
        switch format {
        case .lines: try lines(bytes.rawSpan, &decoder.events, &work)
        case .json: try elements(bytes.rawSpan, &decoder.events, &work)
        case .elements(let ranges): decode(ranges, of: bytes.rawSpan, &decoder.events, &work)
        }
        work.body.sanitized = decoder.events.sanitized - sanitizedBefore
        if work.body.received > 0 { work.body.record = work.builder.finish() }
        return work.body
    }

    private func lines(
        _ bytes: RawSpan, _ decoder: inout EventDecoder, _ work: inout Work
    ) throws(ServiceRefusal) {
        var splitter = LineSplitter()
        while let line = splitter.next(in: bytes) {
            guard work.body.received < settings.linesMax else {
                throw .tooManyLines(settings, lines: nil)
            }
            work.decode(bytes.extracting(line.range), number: line.number, &decoder)
        }
    }

    private func elements(
        _ bytes: RawSpan, _ decoder: inout EventDecoder, _ work: inout Work
    ) throws(ServiceRefusal) {
        var ranges: [Range<Int>] = []
        do throws(JSONBody.Failure) {
            try JSONBody.split(bytes, into: &ranges)
        } catch {
            throw Self.refusal(error)
        }
        guard ranges.count <= settings.linesMax else {
            throw .tooManyLines(settings, lines: ranges.count)
        }
        decode(ranges, of: bytes, &decoder, &work)
    }

    private func decode(
        _ ranges: [Range<Int>], of bytes: RawSpan, _ decoder: inout EventDecoder,
        _ work: inout Work
    ) {
        for (index, range) in ranges.enumerated() {
            work.decode(bytes.extracting(range), number: index + 1, &decoder)
        }
    }

    private static func refusal(_ failure: JSONBody.Failure) -> ServiceRefusal {
        switch failure {
        case .neitherArrayNorObject:
            ServiceRefusal(400, "bad_json", "body is JSON, but neither an array nor an object")
        case .invalid(.syntax(let offset)):
            ServiceRefusal(400, "bad_json", "body is not valid JSON at byte \(offset)")
        case .invalid(.invalidUTF8(let offset)):
            ServiceRefusal(400, "bad_json", "body is not valid UTF-8 at byte \(offset)")
        case .invalid:
            ServiceRefusal(400, "bad_json", "body is not valid JSON")
        }
    }

    /// A decoder in the list, where the decoder itself, which is not copied, cannot be.
    // SAFETY: whoever took it from the list is the only one to use it.
    private final class Decoder: @unchecked Sendable {
        var events: EventDecoder

        init(lineBytesMax: Int) { events = EventDecoder(lineBytesMax: lineBytesMax) }
    }

    /// A body on its way through the decoder.
    private struct Work {
        let errorsMax: Int
        let app: [UInt8]
        let receivedAt: Int64
        let sentAt: Int64?
        let standBack: (() -> Void)?
        /// Bytes decoded since others could go first.
        var turnBytes = 0
        var builder: BodyRecord.Builder
        var body = ParsedBody()

        init(
            parser: BodyParser, app: [UInt8], receivedAt: Int64, sentAt: Int64?, capacity: Int,
            standBack: (() -> Void)?
        ) {
            errorsMax = parser.settings.errorsMax
            self.app = app
            self.receivedAt = receivedAt
            self.sentAt = sentAt
            self.standBack = standBack
            builder = BodyRecord.Builder(app: app, receivedAt: receivedAt, capacity: capacity)
        }

        mutating func decode(_ line: RawSpan, number: Int, _ decoder: inout EventDecoder) {
            body.received += 1
            turnBytes += line.byteCount
            if let standBack, turnBytes > ServiceBody.stepBytes {
                turnBytes = 0
                standBack()
            }
            let verdict = decoder.decode(
                line: line, receivedAt: receivedAt, sentAtHeader: sentAt, app: app, into: &builder)
            guard case .rejected(let rejection) = verdict else { return }
            body.rejected += 1
            body.rejectedByCode[rejection.code, default: 0] += 1
            if body.errors.count < errorsMax {
                body.errors.append(ParsedBody.LineError(line: number, rejection: rejection))
            }
        }
    }
}
