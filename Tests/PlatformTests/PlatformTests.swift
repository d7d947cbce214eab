import Foundation
import Glibc
import Platform
import Synchronization
import Testing

struct ClockTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_796_019_000_123_456, "2026-11-30T06:10:00.123Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000Z"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00.000Z"),
            (253_402_300_800_000_000, "10000-01-01T00:00:00.000Z"),
            (Int64.max, "294247-01-10T04:00:54.775Z"),
            (Int64.min, "-290308-12-21T19:59:05.224Z"),
        ] as [(Int64, String)])
    func timesArePrintedAsRFC3339(time: Int64, expected: String) {
        #expect(Clock.rfc3339(time) == expected)
    }

    @Test func theFractionIsCut() {
        #expect(Clock.rfc3339(1_999_999, fractionDigits: 0) == "1970-01-01T00:00:01Z")
        #expect(Clock.rfc3339(1_999_999, fractionDigits: 6) == "1970-01-01T00:00:01.999999Z")
    }
}

struct LogTests {
    @Test func aLineHasTimeLevelMessageAndFields() {
        #expect(
            Log.line(.warn, "spool is full", hint: "Raise it.", ["bytes": "1", "a b": ""], at: 0)
                == "1970-01-01T00:00:00.000Z WARN  spool is full bytes=1 a b=\"\"\nhint: Raise it.\n"
        )
    }

    @Test func noTextForgesALine() {
        #expect(
            Log.line(.error, "a\nb", ["k": "x \"y\"\u{1b}[0m\r\n"], at: 0)
                == "1970-01-01T00:00:00.000Z ERROR a\\nb k=\"x \\\"y\\\"\\u{1b}[0m\\u{d}\\n\"\n")
    }
}

struct ChecksumTests {
    @Test func theCheckValueIsThatOfTheStandard() {
        let digits = Array("123456789".utf8)
        #expect(CRC32C.checksum(digits.span) == 0xE306_9283)
    }

    /// Bit by bit, from the polynomial.
    private static func checksum(_ bytes: [UInt8], seed: UInt32) -> UInt32 {
        var sum = ~seed
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        return ~sum
    }

    @Test func anyLengthIsSummedAndChains() {
        let bytes = Random.bytes(3000)
        let whole = CRC32C.checksum(bytes.span, seed: 7)
        for count in Array(0...300) + [1023, 1024, 1025, 2047, 3000] {
            let part = Array(bytes.prefix(count))
            let rest = Array(bytes.dropFirst(count))
            let sum = CRC32C.checksum(part.span, seed: 7)
            #expect(sum == Self.checksum(part, seed: 7))
            #expect(CRC32C.checksum(rest.span, seed: sum) == whole)
        }
    }
}

struct HexTests {
    @Test func everyByteSurvives() {
        let bytes = Array(UInt8.min...UInt8.max)
        #expect(Hex.decode(Hex.encode(bytes)) == bytes)
        #expect(Hex.decode(Hex.encode(bytes).uppercased()) == bytes)
        #expect(Hex.encode([0, 171]) == "00ab")
    }

    @Test(arguments: ["0", "0g", "é0", " 0", "00 "])
    func whatIsNotHexadecimalIsRefused(text: String) { #expect(Hex.decode(text) == nil) }

    @Test func randomBytesDiffer() {
        #expect(Random.bytes(0) == [])
        #expect(Random.bytes(16) != Random.bytes(16))
        #expect(Random.bytes(1000).count == 1000)
    }
}

struct ThreadTests {
    @Test func aWaiterSeesTheChangeItWaitsFor() {
        let monitor = Sync.Monitor(0)
        let thread = Thread.start(name: "waker") {
            for _ in 0..<100 {
                monitor.withLock { $0 += 1 }
                monitor.broadcast()
            }
        }
        #expect(
            monitor.wait(until: Clock.deadline(inMilliseconds: 60_000)) { $0 == 100 ? $0 : nil }
                == 100)
        thread.join()
        thread.join()
    }

    @Test func promptIsTheThreadAndNotTheProcess() {
        // Not everywhere: of a kernel with EEVDF, which tells.
        @Sendable func slice() -> Int? {
            let text = try? String(contentsOfFile: "/proc/thread-self/sched", encoding: .utf8)
            let line = text?.split(separator: "\n").first { $0.hasPrefix("se.slice") }
            return line?.split(separator: " ").last.flatMap { Int($0) }
        }
        guard let before = slice() else { return }
        let found = Sync.Monitor<[Int?]>([])
        Thread.start(name: "prompt", isPrompt: true) {
            let own = slice()
            found.withLock { $0.append(own) }
        }.join()
        let other = Thread.promptly {
            Thread.start(name: "prompt") {
                let own = slice()
                found.withLock { $0.append(own) }
            }
        }
        other.join()
        #expect(found.withLock { $0 } == [100_000, 100_000])
        #expect(slice() == before && before != 100_000)
    }

    @Test func niceIsTheThreadAndNotTheProcess() {
        @Sendable func niceness() -> Int? {
            // Field 19 of proc(5); the second, a name in brackets, may have spaces.
            let stat = try? String(contentsOfFile: "/proc/thread-self/stat", encoding: .utf8)
            return stat?.split(separator: ")").last.flatMap { Int($0.split(separator: " ")[16]) }
        }
        let (before, found) = (niceness(), Sync.Monitor<Int?>(nil))
        Thread.start(name: "nice", niceness: 7) {
            let own = niceness()
            found.withLock { $0 = own }
        }.join()
        #expect(found.withLock { $0 } == 7)
        #expect(before == niceness() && before != 7)
    }

    @Test func aDeadlineEndsTheWait() {
        let monitor = Sync.Monitor(0)
        let start = Clock.monotonic()
        let answer: Int? = monitor.wait(until: Clock.deadline(inMilliseconds: 30)) { _ in nil }
        #expect(answer == nil)
        #expect(Clock.monotonic() - start >= 30_000)
        #expect(monitor.wait(until: Clock.deadline(inMilliseconds: -1)) { $0 } == 0)
    }

    @Test func theLockIsReleasedByAThrow() {
        struct Refused: Error {}
        let monitor = Sync.Monitor(1)
        #expect(throws: Refused.self) {
            try monitor.withLock { (_: inout Int) throws(Refused) in throw Refused() }
        }
        #expect(monitor.withLock { $0 } == 1)
    }

    @Test func aFullOrClosedQueueRefuses() {
        let queue = BoundedQueue<Int>(capacity: 2)
        #expect(queue.tryPush(1))
        #expect(queue.tryPush(2))
        #expect(!queue.tryPush(3))
        #expect(queue.pop() == 1)
        #expect(queue.tryPush(4))
        queue.close()
        #expect(!queue.tryPush(5))
        #expect(queue.pop() == 2)
        #expect(queue.pop() == 4)
        #expect(queue.pop() == nil)
        #expect(queue.totals == (3, 3))
    }

    @Test func anEmptyQueueWaitsAndGivesUp() {
        let queue = BoundedQueue<Int>(capacity: 1)
        #expect(queue.pop(timeoutMilliseconds: 1) == nil)
        let thread = Thread.start(name: "push") { _ = queue.tryPush(9) }
        #expect(queue.pop(timeoutMilliseconds: 60_000) == 9)
        thread.join()
    }

    @Test func everyElementIsTakenOnce() {
        let queue = BoundedQueue<Int>(capacity: 8)
        let sum = Atomic(0)
        let consumers = (0..<2).map { _ in
            Thread.start(name: "consume") {
                while let value = queue.pop() { sum.wrappingAdd(value, ordering: .relaxed) }
            }
        }
        for value in 1...2000 { while !queue.tryPush(value) { sched_yield() } }
        queue.close()
        for consumer in consumers { consumer.join() }
        #expect(sum.load(ordering: .relaxed) == 2_001_000)
    }
}
