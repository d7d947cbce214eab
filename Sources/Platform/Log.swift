import Glibc
import Synchronization

/// Messages for the operator: one line each on standard error, a hint as a second line.
///
/// WARN: nothing was lost. ERROR: data was lost or a person is needed.
package enum Log {
    /// How important a message is.
    package enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug
        case info
        case warn
        case error
        case off

        /// The less important first.
        package static func < (left: Level, right: Level) -> Bool {
            left.rawValue < right.rawValue
        }

        /// The level of a word of the configuration: `debug`, `info`, `warn`, `error`, `off`.
        package init?(word: String) {
            guard let level = Level.allCases.first(where: { "\($0)" == word.lowercased() }) else {
                return nil
            }
            self = level
        }
    }

    private static let threshold = Atomic(Level.info.rawValue)

    /// Messages below it are not written; `.info` at the start.
    package static var level: Level {
        get { Level(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
        set { threshold.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Writes what helps to find an error in the program itself.
    package static func debug(
        _ message: @autoclosure () -> String, hint: String? = nil,
        _ fields: KeyValuePairs<String, String> = [:]
    ) {
        if level <= .debug { write(.debug, message(), hint, fields) }
    }

    /// Writes what is worth knowing and needs nobody.
    package static func info(
        _ message: String, hint: String? = nil, _ fields: KeyValuePairs<String, String> = [:]
    ) {
        write(.info, message, hint, fields)
    }

    /// Writes what went wrong with nothing lost.
    package static func warn(
        _ message: String, hint: String? = nil, _ fields: KeyValuePairs<String, String> = [:]
    ) {
        write(.warn, message, hint, fields)
    }

    /// Writes that data was lost or that a person is needed.
    package static func error(
        _ message: String, hint: String? = nil, _ fields: KeyValuePairs<String, String> = [:]
    ) {
        write(.error, message, hint, fields)
    }

    private static func write(
        _ level: Level, _ message: String, _ hint: String?,
        _ fields: KeyValuePairs<String, String>
    ) {
        guard level >= self.level else { return }
        var text = line(level, message, hint: hint, fields, at: Clock.now())
        text.withUTF8 { bytes in
            // One call, so that lines of two threads never mix; a full pipe is nobody's error.
            _ = unsafe Glibc.write(2, bytes.baseAddress, bytes.count)
        }
    }

    /// The text of a message: `2026-11-30T06:10:00.123Z WARN  message key=value`.
    ///
    /// Control characters are escaped, so that no client's text can forge a line.
    package static func line(
        _ level: Level, _ message: String, hint: String? = nil,
        _ fields: KeyValuePairs<String, String> = [:], at time: Microseconds
    ) -> String {
        let word = "\(level)".uppercased()
        var text = Clock.rfc3339(time) + " " + word
        text += String(repeating: " ", count: 6 - word.utf8.count) + escaped(message)
        for (key, value) in fields {
            let isPlain = !value.isEmpty && !value.contains { " \"=".contains($0) }
            text += " " + key + "="
            text += isPlain ? escaped(value) : "\"" + escaped(value, quotes: true) + "\""
        }
        if let hint { text += "\nhint: " + escaped(hint) }
        return text + "\n"
    }

    private static func escaped(_ text: String, quotes: Bool = false) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": result.append(contentsOf: "\\n".unicodeScalars)
            case "\"" where quotes: result.append(contentsOf: "\\\"".unicodeScalars)
            case _ where scalar.value < 32 || (127..<160).contains(scalar.value):
                result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
