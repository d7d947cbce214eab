/// Why a command line or a setting was refused. All of these end in exit code 2.
package enum OptionsError: Error, Equatable, Sendable {
    /// `command` needs one more word.
    case missingCommand(command: String, expected: [String])
    /// The word after `command` selects nothing.
    case unknownCommand(String, command: String, suggestion: String?)
    /// The option, with its dashes, is not one of `command`.
    case unknownOption(String, command: String, suggestion: String?)
    /// The option was the last word, or the next one is an option.
    case missingValue(option: String, command: String)
    /// A flag was given `=value`.
    case unexpectedValue(option: String, command: String)
    /// The value is not what the option takes.
    case badValue(option: String, value: String, expected: String, command: String)
    /// A required option is absent.
    case missingOption(option: String, command: String)
    /// A required operand is absent.
    case missingOperand(String, command: String)
    /// One operand too many.
    case extraOperand(String, command: String)
    /// A setting is unknown or its value is wrong; `place` is `file:line`, a flag or a variable.
    case badSetting(place: String, message: String, hint: String?)

    /// One line, as it goes to stderr.
    package var message: String {
        switch self {
        case .missingCommand(let command, let expected):
            "\(command): expected a command: \(expected.joined(separator: ", "))"
        case .unknownCommand(let word, let command, let suggestion):
            "\(command): unknown command \(quoted(word))\(didYouMean(suggestion))"
        case .unknownOption(let option, let command, let suggestion):
            "\(command): unknown option \(quoted(option))\(didYouMean(suggestion))"
        case .missingValue(let option, let command):
            "\(command): option \(option) needs a value"
        case .unexpectedValue(let option, let command):
            "\(command): option \(option) takes no value"
        case .badValue(let option, let value, let expected, let command):
            "\(command): \(option) is \(quoted(value)), expected \(expected)"
        case .missingOption(let option, let command):
            "\(command): option \(option) is required"
        case .missingOperand(let name, let command):
            "\(command): expected \(name)"
        case .extraOperand(let word, let command):
            "\(command): unexpected argument \(quoted(word))"
        case .badSetting(let place, let message, _):
            "\(place): \(message)"
        }
    }

    /// A second line, a full sentence, where it helps.
    package var hint: String? {
        switch self {
        case .missingCommand(let command, _), .unknownCommand(_, let command, _),
            .unknownOption(_, let command, nil), .missingOperand(_, let command),
            .extraOperand(_, let command), .missingOption(_, let command):
            "Run \"\(command) --help\" for what there is."
        case .badSetting(_, _, let hint): hint
        default: nil
        }
    }
}

/// Puts text between quotes, with control characters made visible.
package func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        if scalar == "\"" || scalar == "\\" {
            result.unicodeScalars.append("\\")
            result.unicodeScalars.append(scalar)
        } else if scalar.value < 0x20 || scalar.value == 0x7F {
            result += "\\u{\(String(scalar.value, radix: 16))}"
        } else {
            result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}

private func didYouMean(_ suggestion: String?) -> String {
    suggestion.map { " (did you mean \($0)?)" } ?? ""
}

/// The candidate nearest to `word`, if it is near enough to be what was meant.
///
/// A candidate that begins with the word counts as near: `--form` means `--format`.
package func nearest(to word: String, among candidates: [String]) -> String? {
    guard !word.isEmpty else { return nil }
    var best: (distance: Int, candidate: String)?
    for candidate in candidates {
        let distance =
            candidate.hasPrefix(word) ? 1 : editDistance(Array(word.utf8), Array(candidate.utf8))
        if distance < best?.distance ?? (max(word.utf8.count, 3) / 3 + 1) {
            best = (distance, candidate)
        }
    }
    return best?.candidate
}

private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var row = Array(0...right.count)
    for (leftIndex, leftByte) in left.enumerated() {
        var diagonal = row[0]
        row[0] = leftIndex + 1
        for (rightIndex, rightByte) in right.enumerated() {
            let above = row[rightIndex + 1]
            row[rightIndex + 1] = min(
                above + 1, row[rightIndex] + 1, diagonal + (leftByte == rightByte ? 0 : 1))
            diagonal = above
        }
    }
    return row[right.count]
}
