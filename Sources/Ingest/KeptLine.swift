import Event
import JSONLines

/// A line that is kept beside the events: of a dead letter or a conflict.
package enum KeptLine {
    /// Decodes it as when it came.
    ///
    /// - Parameters:
    ///   - line: The event as a JSON object.
    ///   - receivedAt: When it came, in microseconds since 1970 UTC.
    /// - Returns: The payload of a ``BodyRecord`` of this one row, or why this version does not take it.
    package static func payload(
        _ line: String, app: String, receivedAt: Int64
    ) -> Result<[UInt8], Rejection> {
        let (line, app) = (Array(line.utf8), Array(app.utf8))
        // What was written for a row may be longer than the line that was sent.
        var decoder = EventDecoder(lineBytesMax: .max)
        var builder = BodyRecord.Builder(app: app, receivedAt: receivedAt)
        switch decoder.decode(
            line: line.rawSpan, receivedAt: receivedAt, sentAtHeader: nil, app: app,
            into: &builder)
        {
        case .accepted: return .success(builder.finish())
        case .rejected(let rejection): return .failure(rejection)
        }
    }
}
