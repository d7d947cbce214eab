import Options
import Testing

@Suite struct QuantityTests {
    static func read(_ text: String, _ unit: QuantityUnit) -> Int? {
        try? parseQuantity(text, unit).get()
    }

    @Test(arguments: [
        ("0", 0), ("1", 1), ("512B", 512), ("1KiB", 1024), ("64MiB", 64 << 20), ("8GiB", 8 << 30),
        ("1TiB", 1 << 40), ("1kB", 1000), ("10MB", 10_000_000), ("8388607TiB", 8_388_607 << 40),
    ]) func aSizeIsRead(text: String, bytes: Int) {
        #expect(Self.read(text, .bytes) == bytes)
    }

    @Test(arguments: [
        "", "MiB", "-1", "+1", "1.5GiB", "64M", "64mib", "64 MiB", "1e3", "8388608TiB",
        "99999999999999999999", "٣MiB", "0x10",
    ]) func aWrongSizeIsRefused(text: String) {
        #expect(Self.read(text, .bytes) == nil)
    }

    @Test(arguments: [
        ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("5min", 300_000), ("24h", 86_400_000),
        ("7d", 604_800_000),
    ]) func aDurationIsRead(text: String, milliseconds: Int) {
        #expect(Self.read(text, .milliseconds(bareUnit: nil)) == milliseconds)
    }

    @Test func aDurationNeedsAUnitUnlessItsKeyHasOne() {
        #expect(Self.read("500", .milliseconds(bareUnit: nil)) == nil)
        #expect(Self.read("500", .milliseconds(bareUnit: "ms")) == 500)
    }

    @Test(arguments: [0, 1, 999, 1000, 1024, 60_000, 90_000, 86_400_000, 10 << 20, 3 << 40])
    func whatIsWrittenReadsTheSame(value: Int) {
        for unit in [QuantityUnit.count, .bytes, .milliseconds(bareUnit: nil)] {
            #expect(Self.read(formatQuantity(value, unit), unit) == value)
        }
    }
}
