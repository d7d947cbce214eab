import Platform

extension Comparison {
    /// The comparison for people: rates, pairs, and what they come to in plain words.
    package func table() -> String {
        let letters = campaigns.indices.map(Self.letter)
        var lines = [
            "as_of         \(report.asOf)", "data_through  \(report.dataThrough)",
            "tz            \(report.timeZone)",
            "rate          \(rate.rawValue), in brackets Wilson's 95 % interval", "",
        ]
        for (letter, row) in zip(letters, campaigns) {
            let value = row[rate]
            var text = "\(letter)  "
            if let share = value.value, let low = value.low, let high = value.high {
                text += "\(Self.percent(share)) % [\(Self.percent(low)) \(Self.percent(high))]  "
            } else {
                text += "n/a  "
            }
            text += "\(Self.count(value.numerator)) of \(Self.count(value.denominator))  "
            lines.append(text + printable(row.campaign ?? ""))
            if let about = row.about { lines += wrapped(about.text, width: 76).map { "   " + $0 } }
        }
        lines.append("")
        for pair in pairs { lines += wrapped(sentence(pair)) }
        lines +=
            [""]
            + wrapped(
                (pairs.count > 1 ? "p values are adjusted for \(pairs.count) pairs (Holm); " : "")
                    + "not corrected for looking repeatedly. The base is units: messages on devices."
            )
        for row in campaigns {
            for flag in row.flags.compactMap(ReportFlag.init) {
                lines += wrapped(
                    "Flag \(flag.rawValue) of \(printable(row.campaign ?? "")): "
                        + "\(flag.meaning) \(flag.advice)")
            }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    /// One JSON object; its names are those of docs/reports.md.
    package func json() -> String {
        func text(_ name: String, _ value: String?) -> String {
            "\"\(name)\":\(value.map(JSONString.quoted) ?? "null")"
        }
        func number(_ name: String, _ value: (some CustomStringConvertible)?) -> String {
            "\"\(name)\":\(value?.description ?? "null")"
        }
        let rows = campaigns.map { "\n" + report.json($0) }.joined(separator: ",")
        let items = pairs.map { pair in
            let difference = pair.difference
            let members = [
                text("a", campaigns[pair.first].campaign),
                text("b", campaigns[pair.second].campaign),
                number("difference", difference?.value), number("low", difference?.low),
                number("high", difference?.high), number("z", difference?.z),
                number("p", difference?.p), number("p_adjusted", pair.adjustedP),
                text("verdict", pair.verdict.rawValue), number("units_needed", pair.unitsNeeded),
                number("more_units_a", moreUnits(pair, of: pair.first)),
                number("more_units_b", moreUnits(pair, of: pair.second)),
                text("text", sentence(pair)),
            ]
            return "\n{\(members.joined(separator: ","))}"
        }
        let head = [
            text("as_of", report.asOf), text("data_through", report.dataThrough),
            text("from", report.from), text("to", report.to), text("timezone", report.timeZone),
            text("cohort", report.cohort), text("rate", rate.rawValue),
        ]
        return "{\(head.joined(separator: ",")),\n\"campaigns\":[\(rows)\n],\n"
            + "\"pairs\":[\(items.joined(separator: ","))\n],\n"
            + "\"note\":\"not corrected for looking repeatedly\"}\n"
    }

    /// What a pair comes to, in words.
    func sentence(_ pair: Pair) -> String {
        let (a, b) = (Self.letter(pair.first), Self.letter(pair.second))
        let name = Self.word(rate)
        guard let difference = pair.difference else {
            return "\(a) and \(b): not enough data yet: one of them has no \(name)."
        }
        let bounds = [difference.low, difference.high].sorted { abs($0) < abs($1) }
        let range = bounds.map { Self.points(abs($0)) }
        switch pair.verdict {
        case .firstHigher, .secondHigher:
            let (higher, lower) = pair.verdict == .firstHigher ? (a, b) : (b, a)
            // Adjusted for several pairs the verdict may be surer than the interval of this one, but
            // never the other way round.
            return "\(higher)'s \(name) is higher than \(lower)'s by \(range[0]) to \(range[1]) "
                + "points; unlikely to be chance (p \(Self.chance(pair.adjustedP)))."
        case .noDifference:
            return "\(a) and \(b): the difference of \(Self.points(abs(difference.value))) points "
                + "may be chance (p \(Self.chance(pair.adjustedP))); between "
                + "\(Self.signed(difference.low)) and \(Self.signed(difference.high)) points. "
                + more(pair)
        case .notEnoughData:
            return "\(a) and \(b): not enough data yet. " + more(pair)
        }
    }

    private func more(_ pair: Pair) -> String {
        guard let first = moreUnits(pair, of: pair.first),
            let second = moreUnits(pair, of: pair.second)
        else { return "There is no difference to see." }
        return
            "To see a difference as large as this one, \(Self.letter(pair.first)) needs \(first) "
            + "more units and \(Self.letter(pair.second)) \(second) more (power 0.8)."
    }

    private static func word(_ rate: ReportRate) -> String {
        switch rate {
        case .ctrDelivered, .ctrSent, .ctrAccepted: "click-through"
        default: rate.rawValue.replacing("_", with: " ")
        }
    }

    /// `A` to `Z`, then `A1` and so on.
    private static func letter(_ index: Int) -> String {
        let letter = String(UnicodeScalar(UInt8(ascii: "A") + UInt8(index % 26)))
        return index < 26 ? letter : letter + "\(index / 26)"
    }

    private static func count(_ value: Int64?) -> String { value.map { "\($0)" } ?? "n/a" }
    private static func percent(_ value: Double) -> String { decimal(value * 100, digits: 2) }
    private static func points(_ value: Double) -> String {
        decimal(value * 100, digits: value < 0.001 ? 2 : 1)
    }
    private static func signed(_ value: Double) -> String {
        (value < 0 ? "−" : "+") + points(abs(value))
    }
    private static func chance(_ p: Double?) -> String {
        guard let p else { return "n/a" }
        return p < 0.001 ? "< 0.001" : decimal(p, digits: p < 0.1 ? 3 : 2)
    }
}
