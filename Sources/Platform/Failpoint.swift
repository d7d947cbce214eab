#if FAILPOINTS
    import Glibc

    /// Named places at which a test makes the program crash, hang or fail. Debug builds only.
    ///
    /// `TAPLINE_FAILPOINTS` says where: rules `PLACE=ACTION`, divided by commas. ACTION is
    ///
    /// - `crash`: the process ends at once by SIGKILL, as if by `kill -9`;
    /// - `stop`: the thread hangs for ever;
    /// - `eio`, `enospc`: the step fails with that error, at places that can fail.
    ///
    /// `ACTION@3` acts at the third passing only (without, at the first), `ACTION%3` at each third. A
    /// line on stderr tells of each that acts. In a release build there is none of this, not even the names.
    package enum Failpoint {
        /// Every place, and whether it can fail.
        private static let places: [String: Bool] = [
            // Before and after each write to a segment; the first are of its header.
            "spool.write.before": true,
            "spool.write.after": true,
            // All of a group is written, and not yet synced.
            "spool.sync.before": true,
            // A group is durable, and nobody has been answered.
            "spool.answer.before": false,
            // A new segment has its header, not yet durable.
            "spool.rotate": true,
            // It is noted which segments are loaded, and none is deleted.
            "spool.release": false,
            // A loaded segment is deleted, and others may be left.
            "spool.delete": false,
            // A file that is replaced is whole under its temporary name.
            "file.replace": true,
            // A row of a COPY is sent.
            "load.copy": false,
            // Everything of a batch is in the transaction.
            "load.commit.before": true,
            // COMMIT is sent, and its result not read.
            "load.commit.sent": false,
            // A batch is committed, and the spool does not know.
            "load.commit.after": false,
            // The full segment of the event table has its index, and the next one is not there.
            "load.close": false,
            // The statements of a migration are done, and not committed.
            "migrate": false,
            // Keys are read from the database, and not yet in force.
            "keys.reload": false,
            // Settings are read again, and not yet in force.
            "settings.reload": false,
        ]

        private enum Action {
            case crash
            case stop
            case fail(Int32)

            init?(word: Substring) {
                switch word {
                case "crash": self = .crash
                case "stop": self = .stop
                case "eio": self = .fail(EIO)
                case "enospc": self = .fail(ENOSPC)
                default: return nil
                }
            }
        }

        private struct Rule {
            let action: Action
            let passing: Int
            let repeats: Bool
            var passed = 0

            /// - Parameter text: `crash`, `eio@2`, `enospc%3`.
            init?(_ text: Substring, canFail: Bool) {
                let word = text.prefix { $0 != "@" && $0 != "%" }
                let rest = text.dropFirst(word.count)
                guard let action = Action(word: word),
                    let passing = Int(rest.isEmpty ? "1" : rest.dropFirst()),
                    passing > 0
                else { return nil }
                if case .fail = action, !canFail { return nil }
                self.action = action
                self.passing = passing
                repeats = rest.first == "%"
            }

            mutating func pass() -> Action? {
                passed += 1
                return (repeats ? passed % passing == 0 : passed == passing) ? action : nil
            }
        }

        /// The rules by place; nil when there are none, as in every run but those of a few tests.
        private static let rules: Sync.Monitor<[String: Rule]>? = {
            guard let text = unsafe getenv("TAPLINE_FAILPOINTS") else { return nil }
            var rules: [String: Rule] = [:]
            for part in unsafe String(cString: text).split(separator: ",") {
                let name = part.prefix { $0 != "=" }
                guard let canFail = places[String(name)],
                    let rule = Rule(part.dropFirst(name.count + 1), canFail: canFail)
                else {
                    say(
                        "TAPLINE_FAILPOINTS: \"\(part)\" is no place with an action that it can have"
                    )
                    exit(2)
                }
                rules[String(name)] = rule
            }
            return Sync.Monitor(rules)
        }()

        /// Passes a place that cannot fail.
        package static func reach(_ place: StaticString) {
            guard let rules else { return }
            _ = act(place, rules)
        }

        /// Passes a place whose step can fail.
        ///
        /// - Parameter path: What the step is about, for the error.
        /// - Throws: The error that the test asks for.
        package static func attempt(_ place: StaticString, _ path: String) throws(SystemError) {
            guard let rules, let code = act(place, rules) else { return }
            throw SystemError(code: code, action: "pass failpoint \(place)", path: path)
        }

        /// - Returns: The error to fail with.
        private static func act(_ place: StaticString, _ rules: Sync.Monitor<[String: Rule]>)
            -> Int32?
        {
            let name = "\(place)"
            precondition(places[name] != nil, "failpoint \(name) is not in the list of places")
            guard let action = rules.withLock({ $0[name]?.pass() }) else { return nil }
            say("failpoint \(name): \(action)")
            switch action {
            case .fail(let code): return code
            case .crash: kill(getpid(), SIGKILL)
            case .stop: break
            }
            while true { pause() }
        }

        private static func say(_ line: String) {
            let bytes = Array((line + "\n").utf8)
            _ = unsafe write(STDERR_FILENO, bytes, bytes.count)
        }
    }
#else
    /// Places at which tests make a debug build fail; here they are nothing.
    ///
    /// Public, as only that is inlined into other modules, so that not even the names are left.
    public enum Failpoint {
        /// Does nothing.
        @inlinable @inline(__always)
        public static func reach(_ place: StaticString) {}

        /// Does nothing, and never throws.
        @inlinable @inline(__always)
        public static func attempt(_ place: StaticString, _ path: String) throws(SystemError) {}
    }
#endif
