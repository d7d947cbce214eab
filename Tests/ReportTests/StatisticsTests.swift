import Report
import Testing

@Suite struct StatisticsTests {
    /// The vectors of docs/reports.md.
    @Test func differencesAreThoseOfTheDocument() throws {
        let vectors:
            [(a: Int64, n: Int64, b: Int64, m: Int64, z: Double, p: Double, Double, Double)] = [
                (120, 2000, 90, 2000, 2.126777, 0.033439, 0.001152, 0.028969),
                (12, 200, 9, 200, 0.672546, 0.501236, -0.030925, 0.061963),
                (300, 10000, 360, 10000, -2.375013, 0.017548, -0.010972, -0.001047),
            ]
        for (a, n, b, m, z, p, low, high) in vectors {
            let found = try #require(Statistics.difference(a, of: n, b, of: m))
            let (foundZ, foundP) = (try #require(found.z), try #require(found.p))
            #expect(abs(foundZ - z) < 5e-7 && abs(foundP - p) < 5e-7)
            #expect(abs(found.low - low) < 5e-7 && abs(found.high - high) < 5e-7)
            #expect(found.hasEnoughData)
            let other = try #require(Statistics.difference(b, of: m, a, of: n))
            #expect(other.value == -found.value && other.p == found.p)
            #expect(abs(other.low + found.high) < 1e-12)
        }
    }

    @Test func wilsonIsWhatTheDatabaseComputes() throws {
        let base = try ReportBase()
        for n: Int64 in [1, 2, 3, 10, 31, 1000, 123_456_789] {
            for k in Set([0, 1, n / 3, n / 2, n - 1, n]) {
                let answer = try base.connection.query(
                    "SELECT tapline.wilson_low($1, $2), tapline.wilson_high($1, $2)",
                    [.int64(k), .int64(n)])
                let mine = try #require(Statistics.wilson(k, of: n))
                #expect(abs(answer.double(0, 0)! - mine.low) < 1e-15)
                #expect(abs(answer.double(0, 1)! - mine.high) < 1e-15)
            }
        }
        #expect(Statistics.wilson(0, of: 0) == nil)
    }

    @Test func fewExpectedAreNoVerdict() throws {
        // Of 100 and 100 with 9 in all, 4.5 are expected in each.
        #expect(Statistics.difference(9, of: 100, 0, of: 100)?.hasEnoughData == false)
        #expect(Statistics.difference(10, of: 100, 0, of: 100)?.hasEnoughData == true)
        #expect(Statistics.difference(0, of: 10, 0, of: 10)?.p == nil)
        #expect(Statistics.difference(0, of: 0, 1, of: 10) == nil)
    }

    @Test func holmKeepsTheOrderAndNeverPassesOne() {
        // By hand: 3 x 0.01, 2 x 0.04, and 0.03 of rank 2 takes 2 x 0.03 = 0.06.
        #expect(Statistics.holm([0.01, 0.04, 0.03]).map { ($0 * 100).rounded() } == [3, 6, 6])
        #expect(Statistics.holm([0.5, 0.9]) == [1, 1])
        #expect(Statistics.holm([]) == [])
    }

    @Test func unitsAreThoseOfTheFormulaByHand() throws {
        // 0.10 against 0.15: (1.96 sqrt(2 x 0.125 x 0.875) + 0.8416 sqrt(0.09 + 0.1275))^2 / 0.0025.
        #expect(Statistics.unitsNeeded(0.10, 0.15) == 686)
        #expect(Statistics.unitsNeeded(0.15, 0.10) == 686)
        #expect(Statistics.unitsNeeded(0.2, 0.2) == nil)
    }
}
