extension String {
    /// This text with values in place of their placeholders, `<name>`; names are small letters and
    /// spaces. Placeholders within a value are filled too; those without a value stay.
    ///
    /// One pass over the text: a report's statement is made for each report.
    package func filled(_ values: [String: String]) -> String {
        let text = utf8
        var result = ""
        var copied = text.startIndex
        var index = copied
        while let open = text[index...].firstIndex(of: UInt8(ascii: "<")) {
            index = text.index(after: open)
            let close =
                text[index...].firstIndex {
                    !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) && $0 != UInt8(ascii: " ")
                } ?? text.endIndex
            guard close < text.endIndex, text[close] == UInt8(ascii: ">"),
                let value = values[String(self[index..<close])]
            else { continue }
            result += self[copied..<open]
            result += value.utf8.contains(UInt8(ascii: "<")) ? value.filled(values) : value
            index = text.index(after: close)
            copied = index
        }
        return result + self[copied...]
    }
}
