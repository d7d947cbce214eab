import Foundation
import FuzzProperties
import Platform
import Postgres
import PostgresTesting
import Testing

/// The bounded run of the fuzzers: every kept input, and a fixed number of changed ones.
@Suite struct FuzzTests {
    static let corpus: URL = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fuzz/corpus")

    /// What is kept in the corpus of a property; crashers too, as they must pass for ever.
    static func kept(_ property: Property) throws -> [(name: String, bytes: [UInt8])] {
        let directory = corpus.appendingPathComponent(property.rawValue).path
        return try FileManager.default.contentsOfDirectory(atPath: directory).sorted().map {
            ($0, Array(FileManager.default.contents(atPath: "\(directory)/\($0)") ?? Data()))
        }
    }

    private static func rounds(_ property: Property) -> Int {
        switch property {
        case .json, .time: 100_000
        case .lines, .source, .head: 20_000
        case .gzip: 5_000
        case .spool: 1_000
        }
    }

    private static func pool(_ property: Property) throws -> [[UInt8]] {
        let listed = property == .json ? CorpusTests.rows.map(\.text) : []
        return try property.madeSeeds + kept(property).map(\.bytes) + listed
    }

    @Test(arguments: Property.allCases) func everyKeptInputIsHarmless(property: Property) throws {
        for seed in property.madeSeeds {
            #expect(property.violation(seed) == nil)
        }
        for (name, bytes) in try Self.kept(property) {
            let violation = property.violation(bytes)
            #expect(violation == nil, "\(name)")
        }
    }

    @Test(arguments: Property.allCases) func changedInputsAreHarmless(property: Property) throws {
        var mutator = Mutator(seed: 20_261_130, pool: try Self.pool(property))
        for round in 0..<Self.rounds(property) {
            let input = mutator.next()
            guard let violation = property.violation(input) else { continue }
            let text = String(decoding: input.prefix(500), as: UTF8.self)
            Issue.record("round \(round): \(violation): \(Hex.encode(input.prefix(500))) \(text)")
            return
        }
    }

    /// The inputs of some rounds that `stored` makes something of.
    private static func taken<Stored>(
        _ property: Property, rounds: Int, _ stored: ([UInt8]) -> Stored?
    ) throws -> [Stored] {
        var mutator = Mutator(seed: 43, pool: try pool(property))
        return (0..<rounds).compactMap { _ in stored(mutator.next()) }
    }

    @Test func whatTheScannerTakesJsonbTakes() throws {
        // As a member, for only objects are stored.
        let texts = try Self.taken(.json, rounds: 60_000) { text in
            Property.storedJSON(Array(#"{"x":"#.utf8) + text + [0x7D])
        }
        #expect(texts.count > 1000)
        let connection = try PostgresConnection(conninfo: try TestDatabase.create())
        for start in stride(from: 0, to: texts.count, by: 500) {
            let part = texts[start..<min(start + 500, texts.count)]
            try Self.expectJsonbTakes(Array(part), connection)
        }
    }

    /// Asks for all at once, and for each only when that fails.
    private static func expectJsonbTakes(
        _ texts: [[UInt8]], _ connection: borrowing PostgresConnection
    ) throws {
        let array = [0x5B] + Array(texts.joined(separator: [0x2C])) + [0x5D]
        let whole = try? connection.query(
            "SELECT jsonb_array_length($1::text::jsonb)::text", [.utf8(array)])
        if whole?.string(0, 0) == "\(texts.count)" { return }
        for text in texts {
            do {
                try connection.query("SELECT $1::text::jsonb", [.utf8(text)])
            } catch {
                Issue.record("\(String(decoding: text, as: UTF8.self)): \(error)")
            }
        }
    }

    @Test func whatTheTimeParserTakesIsTheSameTimeToPostgreSQL() throws {
        let times = try Self.taken(.time, rounds: 50_000, Property.storedTime)
        #expect(times.count > 1000)
        let connection = try PostgresConnection(conninfo: try TestDatabase.create())
        let wrong = try connection.query(
            """
            SELECT a.text || ' is ' || a.time FROM unnest($1::text[], $2::bigint[]) AS a (text, time)
            WHERE (extract(epoch FROM a.text::timestamptz) * 1000000)::bigint <> a.time
            LIMIT 10
            """, [.textArray(times.map(\.text)), .int64Array(times.map(\.microseconds))])
        let shown = (0..<wrong.rows).compactMap { wrong.string($0, 0) }
        #expect(shown.isEmpty)
        try Self.expectSameDates(connection)
    }

    /// As it was sent, too: a date is the same time to PostgreSQL, but for how half a microsecond is
    /// rounded, and but for what it does not know: far zones, and fractions of a second 60.
    private static func expectSameDates(_ connection: borrowing PostgresConnection) throws {
        let dates = try taken(.time, rounds: 200_000) { bytes -> (String, Int64)? in
            guard bytes.count >= 20, bytes[4] == 0x2D, !hasFarZone(bytes), bytes[17] != 0x36,
                let time = Property.storedTime(bytes)
            else { return nil }
            return (String(decoding: bytes, as: UTF8.self), time.microseconds)
        }
        #expect(dates.count > 1000)
        let wrong = try connection.query(
            """
            SELECT a.text || ' is ' || a.time FROM unnest($1::text[], $2::bigint[]) AS a (text, time)
            WHERE abs((extract(epoch FROM a.text::timestamptz) * 1000000)::bigint - a.time) > 1
            LIMIT 10
            """, [.textArray(dates.map(\.0)), .int64Array(dates.map(\.1))])
        let shown = (0..<wrong.rows).compactMap { wrong.string($0, 0) }
        #expect(shown.isEmpty)
    }

    /// Whether the zone is 16 hours or more from UTC.
    private static func hasFarZone(_ text: [UInt8]) -> Bool {
        guard let sign = text[19...].firstIndex(where: { $0 == 0x2B || $0 == 0x2D }) else {
            return false
        }
        let hours = String(decoding: text[(sign + 1)...].prefix(2), as: UTF8.self)
        return Int(hours) ?? 0 >= 16
    }
}
