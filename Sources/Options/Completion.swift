/// The completion script of a shell, or nil for a shell that has none here.
///
/// The scripts under `completions/` are this text.
package func completionScript(shell: String) -> String? {
    switch shell {
    case "bash": bashCompletion()
    case "zsh": zshCompletion()
    case "fish": fishCompletion()
    default: nil
    }
}

/// Every command that is not only a group, with the words that select it.
private func leaves(
    of command: CommandSpec, path: [String] = []
) -> [(path: [String], command: CommandSpec)] {
    [(path, command)]
        + command.commands.flatMap { leaves(of: $0, path: path + [$0.name]) }
}

private let notice = "made by \"tapline completion\" from the table of options"

private func bashCompletion() -> String {
    var cases = ""
    var values = ""
    for (path, command) in leaves(of: .tapline) {
        let key = path.joined(separator: " ")
        var words = command.commands.map(\.name) + command.shownOptions.map { "--\($0.name)" }
        if case .choice(let choices) = command.operand?.kind { words = choices + words }
        if key == "help" { words = CommandSpec.tapline.commands.map(\.name) + words }
        cases += "        \"\(key)\") words=\"\(words.joined(separator: " "))\" ;;\n"
        if command.operand?.kind == .file {
            cases = cases.dropLast(3) + "files=1 ;;\n"
        }
        for option in command.options where !option.hidden && option.placeholder != nil {
            switch option.kind {
            case .choice(let choices):
                values +=
                    "        \"\(key) --\(option.name)\") words=\"\(choices.joined(separator: " "))\" ;;\n"
            case .file: values += "        \"\(key) --\(option.name)\") files=1 ;;\n"
            case .directory: values += "        \"\(key) --\(option.name)\") directories=1 ;;\n"
            default: values += "        \"\(key) --\(option.name)\") ;;\n"
            }
        }
    }
    return """
        # bash completion of tapline; \(notice)
        _tapline() {
            local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
            local path="" word words="" files="" directories="" index
            COMPREPLY=()
            for ((index = 1; index < COMP_CWORD; index++)); do
                word="${COMP_WORDS[index]}"
                case "$path $word" in
        \(groupCases(indent: "        "))
                esac
            done
            if [[ "$previous" == "=" ]]; then previous="${COMP_WORDS[COMP_CWORD - 2]}"; fi
            if [[ "$current" == "=" ]]; then previous="${COMP_WORDS[COMP_CWORD - 1]}" current=""; fi
            case "$path $previous" in
        \(values.dropLast())
                *)
                    case "$path" in
        \(cases.split(separator: "\n").map { "            " + $0.dropFirst(8) }.joined(separator: "\n"))
                    esac
                    ;;
            esac
            if [[ -n "$directories" ]]; then
                mapfile -t COMPREPLY < <(compgen -d -- "$current")
                compopt -o filenames
                return
            fi
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
            if [[ -n "$files" && "$current" != -* ]]; then
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                compopt -o filenames
            fi
        }
        complete -F _tapline tapline

        """
}

private func groupCases(indent: String) -> String {
    leaves(of: .tapline).dropFirst().map { path, _ in
        let before = path.dropLast().joined(separator: " ")
        return
            "\(indent)\"\(before) \(path[path.count - 1])\") path=\"\(path.joined(separator: " "))\" ;;"
    }.joined(separator: "\n")
}

private func zshCompletion() -> String {
    func quotedForZsh(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("'", with: "'\\''")
            .replacing("[", with: "\\[").replacing("]", with: "\\]")
            .replacing(":", with: "\\:")
    }
    func action(_ kind: ValueKind) -> String {
        switch kind {
        case .file: "_files"
        case .directory: "_files -/"
        case .choice(let words): "(\(words.joined(separator: " ")))"
        default: " "
        }
    }
    var functions = ""
    for (path, command) in leaves(of: .tapline) {
        let name = (["_tapline"] + path).joined(separator: "_")
        functions += "\(name)() {\n    _arguments -s"
        if !command.commands.isEmpty { functions += " -C" }
        for option in command.shownOptions {
            let value =
                option.placeholder.map { ":\(quotedForZsh($0)):\(action(option.kind))" } ?? ""
            let names =
                option.short.map { "'(-\($0) --\(option.name))'{-\($0),--\(option.name)}'" }
                ?? "'\(option.repeats ? "*" : "")--\(option.name)\(value.isEmpty ? "" : "=")"
            functions += " \\\n        \(names)[\(quotedForZsh(option.help))]\(value)'"
        }
        if command.commands.isEmpty {
            if let operand = command.operand {
                let star = operand.count.upperBound > 1 ? "*" : ""
                functions += " \\\n        '\(star):\(operand.name):\(action(operand.kind))'"
            }
            functions += "\n}\n"
            continue
        }
        functions += " \\\n        '1: :->command' '*:: :->rest'\n"
        functions += "    case $state in\n    command)\n        local -a commands=(\n"
        for next in command.commands {
            functions += "            '\(next.name):\(quotedForZsh(next.summary))'\n"
        }
        functions += "        )\n        _describe command commands ;;\n    rest)\n"
        functions += "        case $words[1] in\n"
        for next in command.commands {
            functions += "        \(next.name)) \(name)_\(next.name) ;;\n"
        }
        functions += "        esac ;;\n    esac\n}\n"
    }
    return "#compdef tapline\n# zsh completion of tapline; \(notice)\n\(functions)"
        + "if [[ $funcstack[1] == _tapline ]]; then _tapline \"$@\"; else compdef _tapline tapline; fi\n"
}

private func fishCompletion() -> String {
    var text = "# fish completion of tapline; \(notice)\ncomplete -c tapline -f\n"
    func quotedForFish(_ text: String) -> String {
        "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }
    func arguments(_ kind: ValueKind) -> String {
        switch kind {
        case .file: " -F"
        case .directory: " -a '(__fish_complete_directories)'"
        case .choice(let words): " -a '\(words.joined(separator: " "))'"
        default: ""
        }
    }
    for (path, command) in leaves(of: .tapline) {
        var condition = path.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
        if !command.commands.isEmpty {
            let names = command.commands.map(\.name).joined(separator: " ")
            let none = "not __fish_seen_subcommand_from \(names)"
            condition = path.isEmpty ? "__fish_use_subcommand" : "\(condition); and \(none)"
        }
        let start = "complete -c tapline -n \(quotedForFish(condition))"
        for next in command.commands {
            text += "\(start) -a \(next.name) -d \(quotedForFish(next.summary))\n"
        }
        for option in command.shownOptions {
            let short = option.short.map { " -s \($0)" } ?? ""
            let value =
                option.placeholder.map { _ in
                    (option.kind == .file ? " -r" : " -x") + arguments(option.kind)
                } ?? ""
            text += "\(start)\(short) -l \(option.name)\(value) -d \(quotedForFish(option.help))\n"
        }
        if let operand = command.operand, !arguments(operand.kind).isEmpty {
            text += "\(start)\(arguments(operand.kind))\n"
        }
    }
    return text
}
