/// A command line that fits its command.
package struct Parsed: Equatable, Sendable {
    /// The words that selected the command, without `tapline`.
    package let path: [String]
    /// Values by long option name, in order; a flag that was given has one empty value.
    package let values: [String: [String]]
    /// What stood without dashes.
    package let operands: [String]

    /// Whether the flag was given.
    package func flag(_ name: String) -> Bool { values[name] != nil }
    /// The last value given.
    package func value(_ name: String) -> String? { values[name]?.last }
    /// All values given.
    package func all(_ name: String) -> [String] { values[name] ?? [] }
    /// The last value of an option whose kind is a number.
    package func number(_ name: String) -> Int? { value(name).flatMap { Int($0) } }
    /// The last value of an option whose kind is a duration, in milliseconds.
    package func milliseconds(_ name: String) -> Int? {
        value(name).flatMap { try? parseQuantity($0, .milliseconds(bareUnit: nil)).get() }
    }
}

/// What a command line asks for.
package enum Invocation: Equatable, Sendable {
    case run(Parsed)
    case help(path: [String])
    case version
}

/// Parses a command line, GNU style.
///
/// Options and operands may be mixed; `--` ends the options, a lone `-` is an operand. `--help`
/// and `--version` win over whatever follows them. Option names are never abbreviated.
///
/// - Parameters:
///   - arguments: The words after the program's name.
///   - root: The table of commands.
/// - Returns: What to do.
/// - Throws: The first thing wrong.
package func parse(
    _ arguments: [String], root: CommandSpec
) throws(OptionsError) -> Invocation {
    var parser = Parser(command: root)
    var index = 0
    while index < arguments.count {
        let word = arguments[index]
        index += 1
        if parser.onlyOperands || !word.hasPrefix("-") || word == "-" {
            try parser.take(word: word)
            continue
        }
        if word == "--" {
            parser.onlyOperands = true
            continue
        }
        let (option, shown, inlineValue) = try parser.option(word)
        if option.name == "help" { return .help(path: parser.path) }
        if option.name == "version" { return .version }
        guard option.placeholder != nil else {
            guard inlineValue == nil else {
                throw .unexpectedValue(option: shown, command: parser.title)
            }
            parser.values[option.name] = [""]
            continue
        }
        var value = inlineValue
        if value == nil, index < arguments.count, !parser.isOption(arguments[index]) {
            value = arguments[index]
            index += 1
        }
        guard let value else { throw .missingValue(option: shown, command: parser.title) }
        try parser.take(value: value, of: option)
    }
    return .run(try parser.finish())
}

private struct Parser {
    var command: CommandSpec
    var path: [String] = []
    var values: [String: [String]] = [:]
    var operands: [String] = []
    var onlyOperands = false

    var title: String { (["tapline"] + path).joined(separator: " ") }

    init(command: CommandSpec) { self.command = command }

    /// Takes a word without dashes: the next command's name, or an operand.
    mutating func take(word: String) throws(OptionsError) {
        if !command.commands.isEmpty, !onlyOperands {
            guard let next = command.commands.first(where: { $0.name == word }) else {
                throw .unknownCommand(
                    word, command: title,
                    suggestion: nearest(to: word, among: command.commands.map(\.name)))
            }
            command = next
            path.append(word)
            return
        }
        guard let operand = command.operand, operands.count < operand.count.upperBound else {
            throw .extraOperand(word, command: title)
        }
        if let expected = mismatch(word, operand.kind) {
            throw .badValue(option: operand.name, value: word, expected: expected, command: title)
        }
        operands.append(word)
    }

    /// Finds the option a word names, how it was written, and the value joined to it by `=`.
    func option(
        _ word: String
    ) throws(OptionsError) -> (option: OptionSpec, shown: String, value: String?) {
        let known = command.options + CommandSpec.common
        guard word.hasPrefix("--") else {
            guard let option = known.first(where: { $0.short.map { "-\($0)" } == word }) else {
                throw .unknownOption(word, command: title, suggestion: nil)
            }
            return (option, word, nil)
        }
        let parts = word.dropFirst(2).split(
            separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = known.first(where: { $0.name == name }) else {
            let names = command.shownOptions.map(\.name)
            throw .unknownOption(
                "--\(name)", command: title,
                suggestion: nearest(to: name, among: names).map { "--\($0)" })
        }
        return (option, "--\(name)", parts.count > 1 ? String(parts[1]) : nil)
    }

    /// Whether a word is an option of this command, so that it is not another option's value.
    func isOption(_ word: String) -> Bool {
        word == "--" || (word.hasPrefix("--") && (try? option(word)) != nil)
    }

    mutating func take(value: String, of option: OptionSpec) throws(OptionsError) {
        if let expected = mismatch(value, option.kind) {
            throw .badValue(
                option: "--\(option.name)", value: value, expected: expected, command: title)
        }
        if option.repeats {
            values[option.name, default: []].append(value)
        } else {
            values[option.name] = [value]
        }
    }

    func finish() throws(OptionsError) -> Parsed {
        guard command.commands.isEmpty else {
            throw .missingCommand(command: title, expected: command.commands.map(\.name))
        }
        for option in command.options where option.required && values[option.name] == nil {
            throw .missingOption(option: "--\(option.name)", command: title)
        }
        if let operand = command.operand, operands.count < operand.count.lowerBound {
            throw .missingOperand(operand.name, command: title)
        }
        return Parsed(path: path, values: values, operands: operands)
    }
}

/// What was expected, if the value does not fit its kind.
private func mismatch(_ value: String, _ kind: ValueKind) -> String? {
    switch kind {
    case .text: return nil
    case .file, .directory: return value.isEmpty ? "a path" : nil
    case .choice(let words):
        return words.contains(value) ? nil : listed(words)
    case .number(let range):
        guard let number = Int(value), range.contains(number) else {
            return "a number from \(range.lowerBound) to \(range.upperBound)"
        }
        return nil
    case .duration:
        switch parseQuantity(value, .milliseconds(bareUnit: nil)) {
        case .success: return nil
        case .failure(let mismatch): return mismatch.expected
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
package func listed(_ words: [String]) -> String {
    guard let last = words.last, words.count > 1 else { return words.first ?? "" }
    return words.dropLast().joined(separator: ", ") + " or " + last
}
