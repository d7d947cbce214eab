import Client
import Import
import Testing

@Suite struct RowReaderTests {
    /// Rows as `LINE: FIELD|FIELD`, broken ones as `LINE! REASON`.
    static func read(_ text: [UInt8], _ separator: Character = ",", width: Int? = nil) throws
        -> [String]
    {
        let reader = try RowReader(
            .memory(name: "t", text), separator: separator.asciiValue ?? 0x2C)
        if let width { reader.expect(fields: width) }
        var rows: [String] = []
        while let row = try reader.next() {
            switch row.fields {
            case .success(let fields): rows.append("\(row.line): " + fields.joined(separator: "|"))
            case .failure(let error): rows.append("\(row.line)! \(error.reason)")
            }
        }
        return rows
    }

    static func read(_ text: String, _ separator: Character = ",", width: Int? = nil) throws
        -> [String]
    {
        try read(Array(text.utf8), separator, width: width)
    }

    @Test func fieldsAreThoseOfRFC4180() throws {
        #expect(try Self.read("a,b\r\nc,\n,d") == ["1: a|b", "2: c|", "3: |d"])
        #expect(
            try Self.read("\"a,1\",\"say \"\"x\"\"\"\n\"\",z\n") == ["1: a,1|say \"x\"", "2: |z"])
        #expect(
            try Self.read("a\t\"two\r\nlines\"\nb\tc\n", "\t") == ["1: a|two\r\nlines", "3: b|c"])
        #expect(try Self.read("\u{FEFF}a,b\n") == ["1: a|b"])
        #expect(try Self.read("a b \"c\",d\n") == ["1: a b \"c\"|d"], "a quote inside is a quote")
        #expect(try Self.read("\n\r\na\n\n") == ["3: a"], "blank lines are no rows")
        #expect(try Self.read("") == [] && Self.read("\"") == ["1! a quote is not closed"])
        #expect(try Self.read("\"a\"\r") == ["1: a"])
    }

    @Test func aBrokenRowCostsItsFirstLineAlone() throws {
        #expect(
            try Self.read("a,b\n\"open,b\nc,d\ne,f", width: 2) == [
                "1: a|b", "2! a quote is not closed", "3: c|d", "4: e|f",
            ])
        #expect(
            try Self.read("\"x\"y,b\nc,d\n", width: 2) == [
                "1! text follows a closing quote", "2: c|d",
            ])
        #expect(
            try Self.read("\"a\nb\",c,d\ne,f\n", width: 2) == [
                "1! has 3 columns, expected 2", "2! has 3 columns, expected 2", "3: e|f",
            ])
        #expect(
            try Self.read(Array("a,".utf8) + [0xFF, 0x0A] + Array("c,d".utf8)) == [
                "1! column 2 is not valid UTF-8", "2: c|d",
            ])
    }

    /// Whatever the bytes are: it ends, and what is not the end of a line is in some row.
    @Test func nothingIsLostOfAnySmallInput() throws {
        let alphabet = Array("a,\"\n\r".utf8)
        for length in 1...5 {
            var digits = [Int](repeating: 0, count: length)
            while true {
                let text = digits.map { alphabet[$0] }
                let reader = try RowReader(
                    .memory(name: "t", text), separator: UInt8(ascii: ","))
                reader.expect(fields: 2)
                var read: [UInt8] = []
                while let row = try reader.next() { read += row.raw }
                func plain(_ bytes: [UInt8]) -> [UInt8] {
                    bytes.filter { $0 != 0x0A && $0 != 0x0D }
                }
                if plain(read) != plain(text) {
                    Issue.record("\(String(decoding: text, as: UTF8.self).debugDescription)")
                }
                guard let place = digits.lastIndex(where: { $0 < alphabet.count - 1 }) else {
                    break
                }
                digits[place] += 1
                for later in digits.index(after: place)..<length { digits[later] = 0 }
            }
        }
    }

    @Test func aRowIsTheSameHoweverItsBytesCome() throws {
        // Longer than a piece of a file, and a quote at each of its ends.
        let long = String(repeating: "x\"\"y\n", count: 60_000)
        let rows = try Self.read("a,\"\(long)\"\nb,c\n", width: 2)
        #expect(rows.count == 2 && rows[1] == "60002: b|c")
        #expect(rows[0].count == 3 + 2 + long.count - 60_000)
        let endless = "\"" + String(repeating: "y", count: RowReader.rowBytesMax + 10) + "\nb\n"
        #expect(try Self.read(endless) == ["1! a quote is not closed", "2: b"])
    }
}
