import Postgres
import Testing

@Suite struct WilsonTests {
    /// The vectors of docs/reports.md.
    @Test func intervalsAreThoseOfTheDocument() throws {
        let base = try ReportBase()
        let vectors: [(k: Int64, n: Int64, low: Double, high: Double)] = [
            (0, 10, 0, 0.277533), (1, 10, 0.017876, 0.404150), (5, 10, 0.236593, 0.763407),
            (10, 10, 0.722467, 1), (1, 1, 0.206549, 1), (50, 100, 0.403832, 0.596168),
            (37, 1000, 0.026961, 0.050582), (0, 1000, 0, 0.003827),
        ]
        for vector in vectors {
            let answer = try base.connection.query(
                "SELECT tapline.wilson_low($1, $2), tapline.wilson_high($1, $2)",
                [.int64(vector.k), .int64(vector.n)])
            let (low, high) = (answer.double(0, 0)!, answer.double(0, 1)!)
            #expect(abs(low - vector.low) < 5e-7 && abs(high - vector.high) < 5e-7)
            #expect(vector.k > 0 || low == 0)
            #expect(vector.k < vector.n || high == 1)
        }
    }

    @Test func nothingOfNothingHasNoInterval() throws {
        let base = try ReportBase()
        let answer = try base.connection.query(
            "SELECT tapline.wilson_low(0, 0), tapline.wilson_high(0, 0), tapline.wilson_low(NULL, 3)"
        )
        #expect((0..<3).allSatisfy { answer.isNull(0, $0) })
    }
}
