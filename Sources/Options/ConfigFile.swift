import Glibc

/// One `key = value` of a configuration file.
package struct ConfigEntry: Equatable, Sendable {
    /// The dotted key.
    package let key: String
    /// The value without quotes.
    package let value: String
    /// `file:line`.
    package let place: String
}

/// Reads a configuration file.
///
/// - Throws: ``OptionsError/badSetting(place:message:hint:)`` when the file cannot be read or a
///   line is not `key = value`.
package func readConfigFile(_ path: String) throws(OptionsError) -> [ConfigEntry] {
    switch readFile(path, bytesMax: 1 << 20) {
    case .failure(let failure):
        throw .badSetting(
            place: path, message: "could not read configuration: \(failure.reason)", hint: nil)
    case .success(let bytes):
        return try parseConfig(String(decoding: bytes, as: UTF8.self), name: path)
    }
}

/// Parses the text of a configuration file.
///
/// A line is empty, a comment (`#`), or `key = value`, with a comment after it if a space stands
/// before the `#`. A value with spaces at its ends, `#` or quotes is put between double quotes,
/// where `\"` and `\\` stand for themselves. A key stands once.
package func parseConfig(
    _ text: String, name: String
) throws(OptionsError) -> [ConfigEntry] {
    var entries: [ConfigEntry] = []
    var number = 0
    // A CRLF is one Character, and so is its own newline.
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
        number += 1
        let place = "\(name):\(number)"
        let content = trimmed(line)
        if content.isEmpty || content.first == "#" { continue }
        guard let equals = content.firstIndex(of: "=") else {
            throw .badSetting(
                place: place, message: "\(quoted(String(content))) is not key = value", hint: nil)
        }
        let key = String(trimmed(content[..<equals]))
        guard let value = configValue(trimmed(content[content.index(after: equals)...])) else {
            throw .badSetting(
                place: place, message: "\(key) has a value with unbalanced quotes", hint: nil)
        }
        if let first = entries.first(where: { $0.key == key }) {
            throw .badSetting(
                place: place, message: "\(key) is set twice, first at \(first.place)", hint: nil)
        }
        entries.append(ConfigEntry(key: key, value: value, place: place))
    }
    return entries
}

/// Writes a value between quotes, as `parseConfig` reads it.
func quotedForFile(_ value: String) -> String {
    "\"" + value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
}

private func configValue(_ text: Substring) -> String? {
    guard text.first == "\"" else {
        var previous: Character = " "
        let end = text.indices.first { index in
            defer { previous = text[index] }
            return text[index] == "#" && (previous == " " || previous == "\t")
        }
        return String(trimmed(text[..<(end ?? text.endIndex)]))
    }
    var value = ""
    var rest = text.dropFirst()
    while let character = rest.popFirst() {
        if character == "\"" {
            let tail = trimmed(rest)
            return tail.isEmpty || tail.first == "#" ? value : nil
        }
        if character == "\\" {
            guard let next = rest.popFirst() else { return nil }
            value.append(next)
        } else {
            value.append(character)
        }
    }
    return nil
}

private func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
}

/// Why a file could not be read.
package struct FileFailure: Error, Equatable, Sendable {
    /// The system's words, lower case.
    package let reason: String
}

/// Reads a whole small file.
package func readFile(_ path: String, bytesMax: Int) -> Result<[UInt8], FileFailure> {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return .failure(FileFailure(reason: errorText(errno))) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
        // SAFETY: the buffer is valid for its count during the call.
        let count = unsafe chunk.withUnsafeMutableBytes { buffer in
            unsafe read(descriptor, buffer.baseAddress, buffer.count)
        }
        if count < 0 {
            if errno == EINTR { continue }
            return .failure(FileFailure(reason: errorText(errno)))
        }
        if count == 0 { return .success(bytes) }
        guard bytes.count + count <= bytesMax else {
            return .failure(FileFailure(reason: "larger than \(bytesMax) bytes"))
        }
        bytes.append(contentsOf: chunk[..<count])
    }
}

/// The system's words for an `errno`, in lower case.
package func errorText(_ code: Int32) -> String {
    // SAFETY: strerror answers a static or thread-local string that is copied at once.
    let text = unsafe String(cString: strerror(code))
    return text.prefix(1).lowercased() + text.dropFirst()
}
