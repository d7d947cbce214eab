import HTTPServer

/// A source's dialect without its request, to try what it makes of any bytes.
package struct DialectProbe: Sendable {
    private let call: any DialectCall

    /// The dialect of a path.
    ///
    /// - Returns: Nil for a path that no source has.
    package init?(path: String, receivedAt: Int64) {
        let head = DialectHead(
            method: "POST", path: path, headers: HeaderFields(), receivedAt: receivedAt,
            settings: ServiceSettings())
        guard let call = Dialects.call(head) else { return nil }
        self.call = call
    }

    /// The lines that a body comes to.
    ///
    /// - Returns: The lines and where they are, or the status by which the body is refused as a whole.
    package func lines(
        of body: [UInt8]
    ) -> (bytes: [UInt8], ranges: [Range<Int>], refusal: Int?) {
        var lines = DialectLines(countMax: ServiceSettings().linesMax)
        do throws(ServiceRefusal) {
            try call.read(SourceJSON(body), into: &lines)
        } catch {
            return ([], [], call.answer(refused: error).status)
        }
        return (lines.bytes, lines.ranges, nil)
    }
}
