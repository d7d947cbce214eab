/// What an option's value or an operand is: for checking, for `--help` and for completion.
package enum ValueKind: Equatable, Sendable {
    case text
    case file
    case directory
    case choice([String])
    case number(ClosedRange<Int>)
    case duration
}

/// One option of a command, `--name` or `--name VALUE`.
package struct OptionSpec: Equatable, Sendable {
    /// The long name without its dashes.
    package let name: String
    /// The one-letter name, where there is one.
    package let short: Character?
    /// The value's name in `--help`; nil for a flag.
    package let placeholder: String?
    /// What the value is.
    package let kind: ValueKind
    /// One sentence without a period.
    package let help: String
    /// Shown in `--help`; the option itself is then absent when not given.
    package let defaultText: String?
    /// Whether every occurrence counts; otherwise the last one wins.
    package let repeats: Bool
    /// Whether the command is refused without it.
    package let required: Bool
    /// Whether `--help`, completion and the manual page leave it out.
    package let hidden: Bool

    /// Makes a flag, an option without a value.
    package static func flag(
        _ name: String, short: Character? = nil, _ help: String, hidden: Bool = false
    ) -> OptionSpec {
        OptionSpec(
            name: name, short: short, placeholder: nil, kind: .text, help: help,
            defaultText: nil, repeats: false, required: false, hidden: hidden)
    }

    /// Makes an option with any text as its value.
    package static func value(
        _ name: String, _ placeholder: String, _ help: String,
        default defaultText: String? = nil, repeats: Bool = false, required: Bool = false
    ) -> OptionSpec {
        .value(
            name, placeholder, .text, help, default: defaultText, repeats: repeats,
            required: required)
    }

    /// Makes an option with a value of a kind.
    package static func value(
        _ name: String, _ placeholder: String, _ kind: ValueKind, _ help: String,
        default defaultText: String? = nil, repeats: Bool = false, required: Bool = false,
        hidden: Bool = false
    ) -> OptionSpec {
        OptionSpec(
            name: name, short: nil, placeholder: placeholder, kind: kind, help: help,
            defaultText: defaultText, repeats: repeats, required: required, hidden: hidden)
    }
}

/// The operands of a command: what stands on the command line without dashes.
package struct OperandSpec: Equatable, Sendable {
    /// Its name in `--help`, in capitals.
    package let name: String
    /// What it is.
    package let kind: ValueKind
    /// How many there may be.
    package let count: ClosedRange<Int>
    /// One sentence without a period.
    package let help: String

    /// Makes a description of a command's operands.
    package init(_ name: String, _ kind: ValueKind, count: ClosedRange<Int>, _ help: String) {
        self.name = name
        self.kind = kind
        self.count = count
        self.help = help
    }
}

/// One command: the parser, `--help`, completion and the manual page all read it from here.
package struct CommandSpec: Equatable, Sendable {
    /// The word that selects it.
    package let name: String
    /// One line for the list of commands.
    package let summary: String
    /// Paragraphs below the synopsis.
    package let details: [String]
    /// Its own options; `--help` and `--version` are everywhere.
    package let options: [OptionSpec]
    /// Its operands, if it takes any.
    package let operand: OperandSpec?
    /// Further words; a command with these does nothing by itself.
    package let commands: [CommandSpec]
    /// Command lines to show.
    package let examples: [String]

    /// Makes a command.
    package init(
        _ name: String, _ summary: String, details: [String] = [], options: [OptionSpec] = [],
        operand: OperandSpec? = nil, commands: [CommandSpec] = [], examples: [String] = []
    ) {
        self.name = name
        self.summary = summary
        self.details = details
        self.options = options
        self.operand = operand
        self.commands = commands
        self.examples = examples
    }

    /// Its options that are shown, with `--help` and `--version` last.
    package var shownOptions: [OptionSpec] {
        (options + CommandSpec.common).filter { !$0.hidden }
    }

    /// The options that every command has.
    package static let common: [OptionSpec] = [
        .flag("help", short: "h", "show this help"),
        .flag("version", short: "V", "show the version"),
    ]
}
