import Event
import Foundation
import Testing

@testable import Report

/// Plots are drawn to scale, and the numbers below them are those of the events: both by hand.
@Suite struct PlotTests {
    /// Each message to a device of its own.
    static func seed(_ type: EventType, _ name: String, _ campaign: String?, at: Double) -> Seed {
        Seed(type, campaign == nil ? nil : name, on: name, campaign: campaign, at: at).with {
            $0.platform = ["a0", "a1"].contains(name) ? "android" : campaign.map { _ in "ios" }
        }
    }

    /// Of a, eight are sent on Tuesday at 1:00 and received: four are tapped after 1, 4, 30 and 100 s, the
    /// first of them again on Wednesday at 10:00 and before its device buys, a fifth is confirmed. Of b,
    /// five on Thursday after 22:00, one of which is tapped after 1 s, and one twice, without its receipt.
    static let seeds: [Seed] = {
        let (tuesday, wednesday, thursday) = (3600.0, 86_400.0 + 36_000, 2 * 86_400.0 + 79_200)
        var seeds: [Seed] = []
        for number in 0..<8 {
            seeds.append(seed(.sent, "a\(number)", "a", at: tuesday))
            seeds.append(seed(.received, "a\(number)", "a", at: tuesday + 10))
        }
        for (number, delay) in [1.0, 4, 30, 100].enumerated() {
            seeds.append(seed(.clicked, "a\(number)", "a", at: tuesday + 10 + delay))
        }
        seeds.append(seed(.clicked, "a0", "a", at: wednesday))
        seeds.append(seed(.conversion, "a0", nil, at: wednesday + 9))
        seeds.append(seed(.confirmed, "a4", "a", at: tuesday + 60))
        for number in 0..<4 { seeds.append(seed(.received, "b\(number)", "b", at: thursday)) }
        seeds.append(seed(.clicked, "b0", "b", at: thursday + 1))
        for delay in [7.0, 20] { seeds.append(seed(.clicked, "b9", "b", at: thursday + delay)) }
        return seeds
    }()

    struct Page {
        let main: CampaignReport
        let byPlatform: CampaignReport
        let elements: [XMLText.Element]
        let tables: [String: [[String]]]
    }
    static let page = Result {
        let (page, source) = try HTMLTests.page(of: seeds) { try $0.set("journeys", "always") }
        let text = try XMLText(source)
        return Page(
            main: page.main, byPlatform: page.byPlatform, elements: text.elements,
            tables: text.tables)
    }

    /// Delivered and clicked of each, and their share.
    static let campaigns = [("a", 8, 4), ("b", 5, 2)]
    static let platforms = [("ios", 11, 4), ("android", 2, 2)]
    static let steps = [
        ("sent", 8), ("accepted", 8), ("delivered", 13), ("observed", 12), ("clicked", 6),
        ("engaged", 7), ("converted", 1),
    ]

    // The numbers.

    @Test func theTableBelowEachPlotHasItsNumbers() throws {
        let tables = try Self.page.get().tables
        func percent(_ part: Int, _ whole: Int) -> String {
            percentText(Double(part) / Double(whole))
        }
        let funnel = try #require(tables["The funnel"])
        #expect(funnel.map { $0[0] } == Self.steps.map(\.0))
        #expect(funnel.map { Int($0[1]) } == Self.steps.map(\.1))
        // Of the eight that were sent all were delivered.
        let rates = [
            "", "", percent(8, 8), "", percent(6, 13), percent(7, 13), percent(1, 13),
        ]
        #expect(funnel.map { $0[3] } == rates)
        for (name, rows) in [("campaign", Self.campaigns), ("platform", Self.platforms)] {
            let found = try #require(tables["Click-through by \(name)"])
            #expect(found.count == rows.count)
            for (key, delivered, clicked) in rows {
                let row = found.first { $0[0] == key }?.prefix(4)
                let expected = [key, "\(delivered)", "\(clicked)", percent(clicked, delivered)]
                #expect(row.map(Array.init) == expected)
            }
        }
        #expect(
            tables["Delivered and clicked by hour"] == [
                ["2026-09-01T01:00+00:00", "8", "4"], ["2026-09-03T22:00+00:00", "5", "2"],
            ])
        var week = (0..<24).map { [HeatMap.time($0)] + Array(repeating: "0", count: 7) }
        week[1][2] = "4"
        week[10][3] = "1"
        week[22][4] = "3"
        #expect(tables["Clicks by hour of day and weekday"] == week)
        let opened = [(1, 2), (2, 2), (5, 3), (10, 3), (20, 3), (30, 4), (60, 4), (120, 5)]
        var curve = opened.map { seconds, units in
            [duration(Double(seconds)), "\(units)", percent(units, 5)]
        }
        curve.append(["at all", "5", percent(5, 5)])
        #expect(tables["Messages tapped within a time of their receipt"] == curve)
    }

    // What is drawn.

    static func numbers(_ element: XMLText.Element, _ names: String...) -> [Double] {
        names.map { name in
            Double((element.attributes[name] ?? "").replacing("%", with: "")) ?? .nan
        }
    }

    /// The elements of a name and a style in a section.
    static func drawn(_ name: String, _ style: String, in section: String) throws
        -> [XMLText.Element]
    {
        try page.get().elements.filter {
            $0.section == section && $0.name == name && $0.attributes["class"] == style
        }
    }

    /// Whether numbers are as others but for a factor, within what is lost in two digits.
    static func areProportional(_ lengths: [Double], _ counts: [Int]) -> Bool {
        guard let longest = lengths.max(), let most = counts.max(), longest > 20 else {
            return false
        }
        return lengths.count == counts.count
            && zip(lengths, counts).allSatisfy { length, count in
                abs(length - longest * Double(count) / Double(most)) < 0.02
            }
    }

    @Test func barsAreAsLongAsTheirCounts() throws {
        let page = try Self.page.get()
        for (section, counts) in [
            ("funnel", Self.steps.map(\.1)), ("platforms", Self.platforms.map(\.1)),
        ] {
            let bars = page.elements.filter {
                $0.section == section && $0.name == "rect"
                    && $0.attributes["class"]?.hasPrefix("bar") == true
            }
            #expect(
                Self.areProportional(bars.map { Self.numbers($0, "width")[0] }, counts),
                "\(section)")
        }
    }

    /// Dots, whiskers and the line of the whole are where one scale has their rates, whose 0 is the first
    /// line of the grid.
    @Test func dotsAndWhiskersAreOnOneScale() throws {
        let page = try Self.page.get()
        for (section, main) in [("ctr", page.main), ("platform-ctr", page.byPlatform)] {
            let rates = main.rows.map { $0[.ctrDelivered] }.sorted { $0.value! > $1.value! }
            let dots = try Self.drawn("circle", "dot", in: section).map {
                Self.numbers($0, "cx", "cy")
            }
            let whiskers = try Self.drawn("line", "whisker", in: section).map {
                Self.numbers($0, "x1", "x2", "y1", "y2")
            }
            let spans = whiskers.filter { $0[2] == $0[3] }
            let ends = whiskers.filter { $0[2] != $0[3] }
            let grid = try Self.drawn("line", "grid", in: section).map { Self.numbers($0, "x1")[0] }
            let whole = try Self.drawn("line", "whole", in: section).map {
                Self.numbers($0, "x1", "x2")
            }
            try #require(dots.count == rates.count && spans.count == rates.count)
            let zero = try #require(grid.first)
            let scale = (dots[0][0] - zero) / rates[0].value!
            func x(_ share: Double?) -> Double { zero + scale * (share ?? .nan) }
            func isAt(_ place: Double, _ share: Double?) -> Bool { abs(place - x(share)) < 0.05 }
            for (place, rate) in rates.enumerated() {
                #expect(isAt(dots[place][0], rate.value) && dots[place][1] == spans[place][2])
                #expect(isAt(spans[place][0], rate.low) && isAt(spans[place][1], rate.high))
                let (low, high) = (ends[2 * place], ends[2 * place + 1])
                #expect(isAt(low[0], rate.low) && isAt(low[1], rate.low))
                #expect(isAt(high[0], rate.high) && isAt(high[1], rate.high))
            }
            let all = main.totals[.ctrDelivered].value
            #expect(whole.count == 1 && whole[0].allSatisfy { isAt($0, all) })
            // Equal steps, and room for the highest.
            let steps = zip(grid.dropFirst(), grid).map(-)
            #expect(steps.allSatisfy { abs($0 - steps[0]) < 0.03 })
            #expect(x(rates.compactMap(\.high).max()) <= (grid.last ?? 0) + 0.05)
        }
    }

    /// The corners of a path: x in thousandths of the width, y in pixels.
    static func corners(_ path: XMLText.Element) -> [[Double]] {
        (path.attributes["d"] ?? "").split { "MLZ".contains($0) }.map {
            $0.split(separator: " ").map { Double($0) ?? .nan }
        }
    }

    @Test func hoursAreAsHighAsTheirCounts() throws {
        for (style, counts) in [("bar", [8, 5]), ("bar click", [4, 2])] {
            let path = try #require(try Self.drawn("path", style, in: "time").first)
            let corners = Self.corners(path)
            let scale = Scale(upTo: Double(counts[0]), ticks: 3, step: 1)
            try #require(corners.count == 8)
            for (index, count) in counts.enumerated() {
                let bar = corners[index * 4..<index * 4 + 4].map(\.self)
                #expect(bar[0][1] == 120 && bar[3][1] == 120 && bar[1][1] == bar[2][1])
                #expect(abs(120 - bar[1][1] - 120 * scale.share(Double(count))) < 0.02, "\(style)")
                // The first and the last of 70 hours.
                let middle = (bar[0][0] + bar[3][0]) / 2
                #expect(abs(middle - 1000 * (index == 0 ? 0.5 : 69.5) / 70) < 0.02)
            }
        }
    }

    @Test func shadesAreThoseOfTheirClicks() throws {
        let shaded = try Self.page.get().elements.filter {
            $0.section == "week" && $0.name == "rect"
        }
        // Those below are the legend.
        let hours = shaded.filter { Self.numbers($0, "y")[0] < 7 * 26 }
        #expect(hours.count == 7 * 24)
        var found: [[Int]: String] = [:]
        for hour in hours where hour.attributes["class"] != "shade0" {
            let place = Self.numbers(hour, "x", "y")
            found[[Int((place[1] / 26).rounded()), Int((place[0] * 0.24).rounded())]] =
                hour.attributes["class"]
        }
        // Of at most four clicks, fifths of them rounded up.
        #expect(found == [[1, 1]: "shade5", [2, 10]: "shade2", [3, 22]: "shade4"])
    }

    @Test func theCurveRisesThroughItsPoints() throws {
        let path = try #require(try Self.drawn("path", "curve", in: "open").first)
        let corners = Self.corners(path)
        for (seconds, units) in [(1, 2), (2, 2), (5, 3), (30, 4), (60, 4), (120, 5)] {
            let x = 1000 * log(Double(seconds)) / log(120)
            let y = 200 * (1 - Double(units) / 5)
            #expect(
                corners.contains { abs($0[0] - x) < 0.02 && abs($0[1] - y) < 0.02 }, "\(seconds)")
        }
        #expect(zip(corners, corners.dropFirst()).allSatisfy { $0[0] <= $1[0] && $0[1] >= $1[1] })
    }

    // On a terminal.

    /// How many eighths of a character a bar is long.
    static func eighths(_ line: Substring) -> Int {
        line.reduce(0) { sum, character in
            sum + (["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"].firstIndex(of: character) ?? -1) + 1
        }
    }

    @Test func barsOfTheTableAreAsLongAsTheirRates() throws {
        let base = try ReportBase()
        // Much else than clicks engages.
        try base.add(Self.seeds + (1..<4).map { Self.seed(.confirmed, "b\($0)", "b", at: 200_000) })
        let report = try base.report()
        let lines = FormatTests.text(report, .table).split(separator: "\n")
        let bars = ["a ", "b ", "totals "].map { name in
            Self.eighths(lines.first { $0.hasPrefix(name) } ?? "")
        }
        let rates: [Double] = (report.rows + [report.totals]).map { $0[.ctrDelivered].value ?? 0 }
        let expected: [Double] = [0.5, 0.4, 6.0 / 13]
        #expect(rates == expected)
        #expect(bars[0] >= 5 * 8 && bars[0] % 8 == 0)
        for (bar, rate) in zip(bars, rates) {
            #expect(abs(Double(bar) - Double(bars[0]) * rate / rates[0]) <= 0.5)
        }
    }

    @Test func clicksOverTimeAreOneLineToScale() throws {
        let base = try ReportBase()
        try base.add(Self.seeds)
        let table = FormatTests.text(try base.report { try $0.set("by", "day") }, .table)
        // 4, none and 2 clicks; of 7 steps half is rounded up.
        #expect(table.contains("█▁▅\n") && table.contains("2026-09-01 to 2026-09-03"))
        #expect(sparkline([0, 1, 7, 14]) == "▁▂▅█" && sparkline([0, 0]) == "▁▁")
    }
}
