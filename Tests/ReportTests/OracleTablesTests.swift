import PythonTesting
import Testing

@Test func oracleAgreesWithTablesComputedByHand() throws {
    let (status, said) = try PythonScript.run(["test_recompute.py"], in: "Python")
    #expect(status == 0, "\(said)")
}

@Test(arguments: ["statistics", "lines", "units", "effects", "report", "invariance"])
func theSecondOracleAgreesWithTablesComputedByHand(name: String) throws {
    let (status, said) = try PythonScript.run(["test_\(name).py"], in: "Oracle")
    #expect(status == 0, "\(said)")
}
