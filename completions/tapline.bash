# bash completion of tapline; made by "tapline completion" from the table of options
_tapline() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
    local path="" word words="" files="" directories="" index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        word="${COMP_WORDS[index]}"
        case "$path $word" in
        " serve") path="serve" ;;
        " migrate") path="migrate" ;;
        " key") path="key" ;;
        "key create") path="key create" ;;
        "key list") path="key list" ;;
        "key revoke") path="key revoke" ;;
        " app") path="app" ;;
        "app alias") path="app alias" ;;
        "app aliases") path="app aliases" ;;
        "app unalias") path="app unalias" ;;
        " device") path="device" ;;
        "device list") path="device list" ;;
        "device show") path="device show" ;;
        "device apply") path="device apply" ;;
        "device mark-test") path="device mark-test" ;;
        "device unmark-test") path="device unmark-test" ;;
        " category") path="category" ;;
        "category import") path="category import" ;;
        "category list") path="category list" ;;
        " report") path="report" ;;
        " compare") path="compare" ;;
        " send") path="send" ;;
        " top") path="top" ;;
        " check") path="check" ;;
        " explain") path="explain" ;;
        " dlq") path="dlq" ;;
        "dlq list") path="dlq list" ;;
        "dlq show") path="dlq show" ;;
        "dlq replay") path="dlq replay" ;;
        "dlq purge") path="dlq purge" ;;
        " erase") path="erase" ;;
        " retention") path="retention" ;;
        " replay") path="replay" ;;
        " bench") path="bench" ;;
        " demo") path="demo" ;;
        " completion") path="completion" ;;
        " help") path="help" ;;
        esac
    done
    if [[ "$previous" == "=" ]]; then previous="${COMP_WORDS[COMP_CWORD - 2]}"; fi
    if [[ "$current" == "=" ]]; then previous="${COMP_WORDS[COMP_CWORD - 1]}" current=""; fi
    case "$path $previous" in
        "serve --listen") ;;
        "serve --data-dir") directories=1 ;;
        "serve --database") ;;
        "serve --config") files=1 ;;
        "serve --set") ;;
        "migrate --data-dir") directories=1 ;;
        "migrate --database") ;;
        "migrate --config") files=1 ;;
        "key create --app") ;;
        "key create --role") words="ingest read admin" ;;
        "key create --data-dir") directories=1 ;;
        "key create --database") ;;
        "key create --config") files=1 ;;
        "key list --app") ;;
        "key list --format") words="table json" ;;
        "key list --data-dir") directories=1 ;;
        "key list --database") ;;
        "key list --config") files=1 ;;
        "key revoke --data-dir") directories=1 ;;
        "key revoke --database") ;;
        "key revoke --config") files=1 ;;
        "app alias --data-dir") directories=1 ;;
        "app alias --database") ;;
        "app alias --config") files=1 ;;
        "app aliases --app") ;;
        "app aliases --format") words="table json" ;;
        "app aliases --data-dir") directories=1 ;;
        "app aliases --database") ;;
        "app aliases --config") files=1 ;;
        "app unalias --data-dir") directories=1 ;;
        "app unalias --database") ;;
        "app unalias --config") files=1 ;;
        "device list --app") ;;
        "device list --top") ;;
        "device list --format") words="table json" ;;
        "device list --data-dir") directories=1 ;;
        "device list --database") ;;
        "device list --config") files=1 ;;
        "device show --app") ;;
        "device show --format") words="table json" ;;
        "device show --data-dir") directories=1 ;;
        "device show --database") ;;
        "device show --config") files=1 ;;
        "device apply --format") words="table json" ;;
        "device apply --data-dir") directories=1 ;;
        "device apply --database") ;;
        "device apply --config") files=1 ;;
        "device mark-test --app") ;;
        "device mark-test --data-dir") directories=1 ;;
        "device mark-test --database") ;;
        "device mark-test --config") files=1 ;;
        "device unmark-test --app") ;;
        "device unmark-test --data-dir") directories=1 ;;
        "device unmark-test --database") ;;
        "device unmark-test --config") files=1 ;;
        "category import --app") ;;
        "category import --data-dir") directories=1 ;;
        "category import --database") ;;
        "category import --config") files=1 ;;
        "category list --app") ;;
        "category list --format") words="table json" ;;
        "category list --data-dir") directories=1 ;;
        "category list --database") ;;
        "category list --config") files=1 ;;
        "report --from") ;;
        "report --to") ;;
        "report --tz") ;;
        "report --app") ;;
        "report --campaign") ;;
        "report --by") ;;
        "report --journeys") words="auto always never" ;;
        "report --conversion-window") ;;
        "report --as-of") ;;
        "report --since") ;;
        "report --sort") ;;
        "report --top") ;;
        "report --format") words="table json ndjson csv html" ;;
        "report --output") files=1 ;;
        "report --data-dir") directories=1 ;;
        "report --database") ;;
        "report --config") files=1 ;;
        "compare --rate") ;;
        "compare --from") ;;
        "compare --to") ;;
        "compare --tz") ;;
        "compare --app") ;;
        "compare --as-of") ;;
        "compare --format") words="table json" ;;
        "compare --output") files=1 ;;
        "compare --data-dir") directories=1 ;;
        "compare --database") ;;
        "compare --config") files=1 ;;
        "send --url") ;;
        "send --key") ;;
        "send --batch") ;;
        "send --connections") ;;
        "send --retry-for") ;;
        "send --format") words="table json" ;;
        "top --url") ;;
        "top --interval") ;;
        "top --format") words="table json" ;;
        "check --format") words="table json" ;;
        "check --data-dir") directories=1 ;;
        "check --database") ;;
        "check --config") files=1 ;;
        "explain --app") ;;
        "explain --format") words="table json" ;;
        "explain --data-dir") directories=1 ;;
        "explain --database") ;;
        "explain --config") files=1 ;;
        "dlq list --app") ;;
        "dlq list --format") words="table json ndjson" ;;
        "dlq list --data-dir") directories=1 ;;
        "dlq list --database") ;;
        "dlq list --config") files=1 ;;
        "dlq show --format") words="table json ndjson" ;;
        "dlq show --data-dir") directories=1 ;;
        "dlq show --database") ;;
        "dlq show --config") files=1 ;;
        "dlq replay --format") words="table json ndjson" ;;
        "dlq replay --data-dir") directories=1 ;;
        "dlq replay --database") ;;
        "dlq replay --config") files=1 ;;
        "dlq purge --older-than") ;;
        "dlq purge --data-dir") directories=1 ;;
        "dlq purge --database") ;;
        "dlq purge --config") files=1 ;;
        "erase --device") ;;
        "erase --person") ;;
        "erase --app") ;;
        "erase --format") words="table json" ;;
        "erase --data-dir") directories=1 ;;
        "erase --database") ;;
        "erase --config") files=1 ;;
        "retention --keep") ;;
        "retention --format") words="table json" ;;
        "retention --data-dir") directories=1 ;;
        "retention --database") ;;
        "retention --config") files=1 ;;
        "replay --from") ;;
        "replay --format") words="table json" ;;
        "replay --data-dir") directories=1 ;;
        "replay --database") ;;
        "replay --config") files=1 ;;
        "bench --url") ;;
        "bench --key") ;;
        "bench --log") files=1 ;;
        "bench --events") ;;
        "bench --batch") ;;
        "bench --connections") ;;
        "bench --rate") ;;
        "bench --seed") ;;
        "bench --resend") ;;
        "bench --delay") ;;
        "bench --storm") ;;
        "bench --retry-for") ;;
        "bench --format") words="table json" ;;
        "bench --data-dir") directories=1 ;;
        "bench --database") ;;
        "bench --config") files=1 ;;
        "demo --data-dir") directories=1 ;;
        *)
            case "$path" in
            "") words="serve migrate key app device category report compare send top check explain dlq erase retention replay bench demo completion help --help --version" ;;
            "serve") words="--listen --data-dir --database --config --set --check-config --print-config --help --version" ;;
            "migrate") words="--data-dir --database --config --help --version" ;;
            "key") words="create list revoke --help --version" ;;
            "key create") words="--app --role --data-dir --database --config --help --version" ;;
            "key list") words="--app --format --data-dir --database --config --help --version" ;;
            "key revoke") words="--data-dir --database --config --help --version" ;;
            "app") words="alias aliases unalias --help --version" ;;
            "app alias") words="--without-key --data-dir --database --config --help --version" ;;
            "app aliases") words="--app --format --data-dir --database --config --help --version" ;;
            "app unalias") words="--data-dir --database --config --help --version" ;;
            "device") words="list show apply mark-test unmark-test --help --version" ;;
            "device list") words="--app --top --format --data-dir --database --config --help --version" ;;
            "device show") words="--app --format --data-dir --database --config --help --version" ;;
            "device apply") words="--format --data-dir --database --config --help --version" ;;
            "device mark-test") words="--app --data-dir --database --config --help --version" ;;
            "device unmark-test") words="--app --data-dir --database --config --help --version" ;;
            "category") words="import list --help --version" ;;
            "category import") words="--app --replace --data-dir --database --config --help --version" files=1 ;;
            "category list") words="--app --format --data-dir --database --config --help --version" ;;
            "report") words="--from --to --tz --app --campaign --by --by-activity --journeys --conversion-window --as-of --since --include-test --sort --top --format --output --data-dir --database --config --help --version" ;;
            "compare") words="--rate --from --to --tz --app --as-of --include-test --format --output --data-dir --database --config --help --version" ;;
            "send") words="--url --key --batch --connections --retry-for --format --help --version" files=1 ;;
            "top") words="--url --interval --once --format --help --version" ;;
            "check") words="--format --data-dir --database --config --help --version" ;;
            "explain") words="--app --format --data-dir --database --config --help --version" ;;
            "dlq") words="list show replay purge --help --version" ;;
            "dlq list") words="--app --format --data-dir --database --config --help --version" ;;
            "dlq show") words="--format --data-dir --database --config --help --version" ;;
            "dlq replay") words="--all --format --data-dir --database --config --help --version" ;;
            "dlq purge") words="--all --older-than --yes --data-dir --database --config --help --version" ;;
            "erase") words="--device --person --app --format --data-dir --database --config --help --version" ;;
            "retention") words="--keep --format --data-dir --database --config --help --version" ;;
            "replay") words="--from --format --data-dir --database --config --help --version" ;;
            "bench") words="--url --key --log --events --batch --connections --rate --seed --resend --shuffle --delay --storm --retry-for --verify --format --data-dir --database --config --help --version" ;;
            "demo") words="--data-dir --keep --help --version" ;;
            "completion") words="bash zsh fish --help --version" ;;
            "help") words="serve migrate key app device category report compare send top check explain dlq erase retention replay bench demo completion help --help --version" ;;
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
