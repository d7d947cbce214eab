/// Where a setting's value goes and how it is written.
package enum SettingSlot: Sendable {
    case address
    case database
    case directory
    case logLevel
    case path(WritableKeyPath<ServeSettings, String> & Sendable)
    case quantity(
        WritableKeyPath<ServeSettings, Int> & Sendable, QuantityUnit, ClosedRange<Int>)
}

/// One setting: a key of the file, a variable of the environment, perhaps a flag.
package struct SettingSpec: Sendable {
    /// The dotted key of the file.
    package let key: String
    /// The flag of `tapline serve` that sets it, without dashes; others go through `--set`.
    package let flag: String?
    /// Where it goes.
    package let slot: SettingSlot
    /// One sentence without a period.
    package let help: String

    /// The variable: `TAPLINE_` and the key in capitals with underscores.
    package var variable: String {
        "TAPLINE_" + key.uppercased().replacing(".", with: "_")
    }

    /// Stores a written value.
    ///
    /// - Returns: What was expected, if the value does not fit; `settings` is then unchanged.
    package func store(_ text: String, in settings: inout ServeSettings) -> String? {
        switch slot {
        case .address:
            guard let address = ListenAddress(text) else {
                return "ADDR:PORT, for example 127.0.0.1:8080"
            }
            settings.listen = address
        case .database:
            settings.database = text.isEmpty ? nil : text
        case .directory:
            guard !text.isEmpty else { return "a directory" }
            settings.dataDirectory = text
        case .logLevel:
            guard let level = LogLevel(rawValue: text) else {
                return listed(LogLevel.allCases.map(\.rawValue))
            }
            settings.logLevel = level
        case .path(let path):
            guard text.hasPrefix("/"), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
                !text.contains(where: { "?#%".contains($0) })
            else { return "a path of a URL, for example /sap/notification-status" }
            let part = text.dropFirst().prefix { $0 != "/" }
            guard !Self.takenParts.contains(String(part)) else {
                return "a path that is not served already: neither / nor below "
                    + listed(Self.takenParts.dropFirst().map { "/" + $0 })
            }
            settings[keyPath: path] = text
        case .quantity(let path, let unit, let range):
            switch parseQuantity(text, unit) {
            case .failure(let mismatch): return mismatch.expected
            case .success(let value):
                guard range.contains(value) else {
                    return "\(formatQuantity(range.lowerBound, unit)) to "
                        + formatQuantity(range.upperBound, unit)
                }
                settings[keyPath: path] = value
            }
        }
        return nil
    }

    /// The value as the file would have it, without passwords; nil when it is not set.
    package func text(of settings: ServeSettings) -> String? {
        switch slot {
        case .address: settings.listen.description
        case .database: settings.database.map(withoutPassword)
        case .directory: settings.dataDirectory
        case .logLevel: settings.logLevel.rawValue
        case .path(let path): settings[keyPath: path]
        case .quantity(let path, let unit, _): formatQuantity(settings[keyPath: path], unit)
        }
    }

    /// How the paths begin that have a fixed place: of the page, our own, Vibes, Mapp Engage and
    /// NotiPilot, Pushwoosh.
    private static let takenParts = [
        "", "v1", "healthz", "readyz", "metrics", "mobile_apps", "api", "json",
    ]

    private static func bytes(
        _ key: String, _ path: WritableKeyPath<ServeSettings, Int> & Sendable,
        _ range: ClosedRange<Int>, _ help: String
    ) -> SettingSpec {
        SettingSpec(key: key, flag: nil, slot: .quantity(path, .bytes, range), help: help)
    }

    private static func count(
        _ key: String, _ path: WritableKeyPath<ServeSettings, Int> & Sendable,
        _ range: ClosedRange<Int>, _ help: String
    ) -> SettingSpec {
        SettingSpec(key: key, flag: nil, slot: .quantity(path, .count, range), help: help)
    }

    private static func duration(
        _ key: String, _ path: WritableKeyPath<ServeSettings, Int> & Sendable,
        _ range: ClosedRange<Int>, _ help: String
    ) -> SettingSpec {
        let unit = QuantityUnit.milliseconds(bareUnit: key.hasSuffix("_ms") ? "ms" : nil)
        return SettingSpec(key: key, flag: nil, slot: .quantity(path, unit, range), help: help)
    }

    private static let day = 86_400_000

    /// Every setting, in the order they are printed.
    package static let all: [SettingSpec] = [
        SettingSpec(
            key: "listen", flag: "listen", slot: .address, help: "address and port of HTTP"),
        SettingSpec(
            key: "data_dir", flag: "data-dir", slot: .directory,
            help: "directory of the spool, the caches and the embedded database"),
        SettingSpec(
            key: "database", flag: "database", slot: .database,
            help: "a libpq connection string; without one, DATABASE_URL, PG..., else embedded"),
        SettingSpec(
            key: "log.level", flag: nil, slot: .logLevel,
            help: "what is logged: error, warn, info or debug"),
        bytes(
            "http.body_bytes_max", \.http.bodyBytesMax, 1024...1 << 30,
            "bytes of a body, as sent and inflated alike"),
        count("http.body_lines_max", \.http.bodyLinesMax, 1...1_000_000, "lines of a body"),
        bytes("http.line_bytes_max", \.http.lineBytesMax, 1024...16 << 20, "bytes of a line"),
        bytes(
            "http.header_bytes_max", \.http.headerBytesMax, 1024...1 << 20,
            "bytes of a request's headers"),
        duration(
            "http.header_timeout", \.http.headerTimeoutMilliseconds, 100...day,
            "time to send the headers"),
        duration(
            "http.body_timeout", \.http.bodyTimeoutMilliseconds, 100...day,
            "time to send the body"),
        duration(
            "http.idle_timeout", \.http.idleTimeoutMilliseconds, 100...day,
            "time a kept connection may do nothing"),
        count("http.connections_max", \.http.connectionsMax, 1...100_000, "connections in all"),
        count(
            "http.connections_per_address_max", \.http.connectionsPerAddressMax, 1...100_000,
            "connections from one address"),
        count(
            "http.address_connections_per_second_max", \.http.addressConnectionsPerSecondMax,
            0...1_000_000, "new connections a second from one address, then closed; 0 for no limit"),
        bytes(
            "http.in_flight_bytes_max", \.http.inFlightBytesMax, 1 << 20...1 << 34,
            "bytes of all bodies in flight, inflated or as sent, then 503"),
        count(
            "http.key_requests_per_second_max", \.http.keyRequestsPerSecondMax, 0...1_000_000,
            "requests a second of one key, then 429; 0 for no limit"),
        count(
            "http.key_events_per_second_max", \.http.keyEventsPerSecondMax, 0...100_000_000,
            "events a second of one key, then 429; 0 for no limit"),
        duration(
            "http.key_burst", \.http.keyBurstMilliseconds, 1...day,
            "time whose share of requests and events a key may save up"),
        count(
            "http.alias_requests_per_second_max", \.http.aliasRequestsPerSecondMax, 0...1_000_000,
            "requests a second of one vendor's app id without a key, then 429; 0 for no limit"),
        SettingSpec(
            key: "http.sap_status_path", flag: nil, slot: .path(\.http.sapStatusPath),
            help: "where notification statuses of SAP Mobile Services are taken"),
        SettingSpec(
            key: "http.sap_registration_path", flag: nil, slot: .path(\.http.sapRegistrationPath),
            help: "where registrations of devices of SAP Mobile Services are taken"),
        duration(
            "http.drain_timeout", \.http.drainTimeoutMilliseconds, 0...day,
            "time SIGTERM gives to requests in flight"),
        bytes(
            "spool.segment_bytes_max", \.spool.segmentBytesMax, 1 << 16...1 << 32,
            "bytes of a segment file"),
        bytes(
            "spool.bytes_max", \.spool.bytesMax, 1 << 20...1 << 50,
            "bytes waiting for the database, then 503"),
        duration(
            "spool.keep", \.spool.keepMilliseconds, 0...3650 * day,
            "time loaded segments are kept for replay"),
        bytes(
            "spool.keep_bytes", \.spool.keepBytes, 0...1 << 50,
            "bytes of loaded segments kept for replay"),
        count("load.batch_rows_max", \.load.batchRowsMax, 1...1_000_000, "rows of a transaction"),
        count(
            "load.segment_rows_max", \.load.segmentRowsMax, 100...100_000_000,
            "rows of a partition of the event table"),
        bytes(
            "load.identity_files_bytes_max", \.load.identityFilesBytesMax, 0...1 << 50,
            "bytes of the files by which repeats are found without asking the database"),
        duration(
            "load.batch_age_ms", \.load.batchAgeMilliseconds, 1...60_000,
            "time the first row of a batch waits for others"),
        duration(
            "load.lock_timeout", \.load.lockTimeoutMilliseconds, 100...day,
            "time a transaction waits for a lock, then it is tried again"),
        duration(
            "load.statement_timeout", \.load.statementTimeoutMilliseconds, 100...day,
            "time of one statement; a server silent for 5s longer is given up"),
        duration(
            "report.timeout", \.report.timeoutMilliseconds, 100...day,
            "time the database gets for a report over HTTP, then 503"),
    ]

    /// The setting with that key.
    package static func named(_ key: String) -> SettingSpec? { all.first { $0.key == key } }
}

/// Replaces the password in a connection string or URL by `***`.
func withoutPassword(_ conninfo: String) -> String {
    guard let scheme = conninfo.firstRange(of: "://"),
        let at = conninfo[scheme.upperBound...].lastIndex(of: "@"),
        let colon = conninfo[scheme.upperBound..<at].firstIndex(of: ":")
    else { return withoutPasswordWord(conninfo) }
    return withoutPasswordWord(conninfo[...colon] + "***" + conninfo[at...])
}

/// The same for `password=…`, which a URL may have among its parameters.
private func withoutPasswordWord(_ conninfo: String) -> String {
    guard let key = conninfo.firstRange(of: "password") else { return conninfo }
    var rest = conninfo[key.upperBound...].drop { $0 == " " }
    guard rest.first == "=" else { return conninfo }
    rest = rest.dropFirst().drop { $0 == " " }
    let isQuoted = rest.first == "'"
    if isQuoted { rest = rest.dropFirst() }
    var escaped = false
    let end = rest.firstIndex { character in
        if escaped {
            escaped = false
            return false
        }
        escaped = character == "\\"
        return isQuoted ? character == "'" : character == " " || character == "&"
    }
    var tail = end.map { rest[$0...] } ?? ""
    if isQuoted { tail = tail.dropFirst() }
    return conninfo[..<key.upperBound] + "=***" + tail
}
