import Foundation
import ProcessTesting
import Testing

/// Scripts of `Tests/Python` and `Tests/Oracle`, which need Python 3 and its standard library alone.
enum Python {
    /// Runs a script to its end.
    ///
    /// - Returns: Its exit status, and what it wrote.
    static func run(_ script: String, _ arguments: [String] = [], in place: String = "Python")
        throws -> (Int32, String)
    {
        let directory = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../\(place)").standardized
        return try ProcessTesting.run(
            ["python3", "-B", directory.appending(path: script).path] + arguments)
    }
}

@Test func oracleAgreesWithTablesComputedByHand() throws {
    let (status, said) = try Python.run("test_recompute.py")
    #expect(status == 0, "\(said)")
}

@Test(arguments: ["statistics", "lines", "units", "effects", "report", "invariance"])
func theSecondOracleAgreesWithTablesComputedByHand(name: String) throws {
    let (status, said) = try Python.run("test_\(name).py", in: "Oracle")
    #expect(status == 0, "\(said)")
}
