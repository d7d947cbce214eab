/// The bodies of the bench: the events of `lines` in Benchmarks/bench.py, from a fixed seed.
enum Bodies {
    /// Lines of a body.
    static let events = 1000
    /// The time of receipt, 2026-07-01T12:00:00Z in microseconds.
    static let now: Int64 = 1_782_907_200_000_000

    /// A body of events of 300 to 400 bytes: one receipt a message, 8 % clicks, 5 % inbox opens.
    static func make(_ numbers: inout Numbers) -> [UInt8] {
        var text = ""
        var recent: [(message: String, device: String, campaign: Int)] = []
        for _ in 0..<events {
            let roll = numbers.next(below: 1000)
            let of: (message: String, device: String, campaign: Int)
            var kind = "received"
            if roll < 115, let one = recent.randomElement(using: &numbers) {
                of = one
                kind = roll < 70 ? "clicked" : "inbox_open"
            } else {
                of = (numbers.uuid(), numbers.uuid(), numbers.next(below: 200))
                recent.append(of)
            }
            let minute = numbers.padded(below: 60, 2)
            let second = numbers.padded(below: 60, 2)
            text += "{\"type\":\"\(kind)\",\"message_uid\":\"\(of.message)\""
            text += ",\"device_id\":\"\(of.device)\",\"event_uid\":\"\(numbers.uuid())\""
            text += ",\"campaign_id\":\"campaign-\(of.campaign)\""
            text += ",\"occurred_at\":\"2026-07-01T11:\(minute):\(second)"
            text += ".\(numbers.padded(below: 1000, 3))Z\",\"platform\":\"ios\""
            text += ",\"app_version\":\"4.\(of.campaign % 9).1\",\"properties\":{"
            text += "\"screen\":\"home\",\"session\":\(numbers.next(below: 1_000_000_000))"
            text += ",\"experiment\":\"b\(of.campaign % 3)\"}}\n"
        }
        return Array(text.utf8)
    }
}

/// SplitMix64.
struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    mutating func next(below limit: Int) -> Int { Int(next() % UInt64(limit)) }

    mutating func padded(below limit: Int, _ width: Int) -> String {
        let digits = String(next(below: limit))
        return String(repeating: "0", count: width - digits.count) + digits
    }

    mutating func uuid() -> String {
        var digits = [next(), next()].flatMap { word in
            (0..<16).map { String(word >> (4 * UInt64($0)) & 15, radix: 16) }
        }
        digits[12] = "4"
        for place in [20, 16, 12, 8] { digits.insert("-", at: place) }
        return digits.joined()
    }
}
