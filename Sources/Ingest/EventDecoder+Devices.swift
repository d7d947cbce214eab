import Event
import JSONLines

extension EventDecoder {
    /// Checks what only a ``DeviceChange`` has: a device, and topics within their limits.
    mutating func checkDevice(_ line: RawSpan) throws(Rejection) {
        let source = EventSource(line: line, scratch: scratch.rawSpan)
        guard DeviceChange(word: source.bytes(of: event.texts[.typeRaw])) != nil else { return }
        guard event.texts[.deviceID].isPresent else { throw Rejection(.missingDeviceID, .deviceID) }
        let properties = event.texts[.properties]
        guard properties.isPresent else { return }
        let bytes = unsafe source.bytes(of: properties).withUnsafeBytes { unsafe [UInt8]($0) }
        if let topics = SourceJSON(bytes).object?["topics"] { try Self.check(topics: topics) }
    }

    /// Whether a value is an array of texts that are not empty, however many and long.
    static func isListOfTopics(_ value: SourceJSON) -> Bool {
        do throws(Rejection) {
            try check(topics: value)
            return true
        } catch {
            return error.code != .invalidTopics
        }
    }

    /// Checks the topics of a device: an array of texts that are not empty, within the limits.
    private static func check(topics: SourceJSON) throws(Rejection) {
        guard topics.raw.first == Ascii.leftBracket, let elements = topics.elements else {
            throw Rejection(.invalidTopics)
        }
        guard elements.count <= DeviceChange.topicsMax else {
            throw Rejection(
                .tooManyTopics, actual: elements.count, limit: DeviceChange.topicsMax)
        }
        for range in elements {
            let topic = SourceJSON(topics.bytes, range)
            guard topic.raw.first == Ascii.quote, let text = topic.text else {
                throw Rejection(.invalidTopics)
            }
            let characters = text.unicodeScalars.count
            guard characters <= DeviceChange.topicCharactersMax else {
                throw Rejection(
                    .topicTooLong, actual: characters, limit: DeviceChange.topicCharactersMax)
            }
        }
    }
}
