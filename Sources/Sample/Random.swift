/// SplitMix64: small, fast, and the same numbers everywhere for one seed.
///
/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014. Seed 0 gives
/// 0xE220A8397B1DCDAF first.
package struct SplitMix64: Sendable {
    private var state: UInt64

    /// Begins the sequence of a seed.
    package init(seed: UInt64) { state = seed }

    /// The next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number in 0 ..< bound, nearly uniform.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// True so many times in a thousand.
    mutating func chance(_ perThousand: Int) -> Bool { below(1000) < perThousand }

    /// A delay in milliseconds: most are short, few come near the longest.
    mutating func delay(upTo longest: Int) -> Int64 {
        let part = below(1000)
        return Int64(below(longest)) * Int64(part * part) / 1_000_000
    }
}

/// 128 random bits that are written as a UUID of version 4.
struct UniqueID: Equatable {
    let high: UInt64
    let low: UInt64

    init(_ random: inout SplitMix64) {
        high = random.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        low = random.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    }
}
