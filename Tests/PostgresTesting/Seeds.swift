import Glibc

/// The seeds of a random test that asks PostgreSQL hundreds of times.
///
/// A few in every run, as `make test` has to end soon; `make test-random` tries as many times more as its
/// SEEDS says.
package enum Seeds {
    /// - Parameter count: How many every run tries.
    package static func few(_ count: UInt64) -> Range<UInt64> { 0..<count * factor }

    private static let factor: UInt64 = {
        guard let text = unsafe getenv("TEST_SEEDS") else { return 1 }
        guard let factor = UInt64(unsafe String(cString: text)), factor > 0 else {
            fatalError("TEST_SEEDS is \(unsafe String(cString: text)), not a number from 1")
        }
        return factor
    }()
}
