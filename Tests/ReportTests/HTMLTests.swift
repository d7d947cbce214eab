import Event
import Foundation
import FoundationXML
import Testing

@testable import Report

@Suite struct HTMLTests {
    /// What a browser could make of a name that is not escaped.
    static let hostile = "<script>alert('x')</script>&amp;\"]]>\u{202E}\u{7}\u{FFFE}ü"

    static func page(
        of seeds: [Seed], _ change: (inout ReportOptions) throws -> Void = { _ in }
    ) throws -> (page: HTMLReport, source: String) {
        let base = try ReportBase()
        try base.add(seeds)
        // The clock of the device, for the time to open.
        try base.connection.execute("UPDATE tapline.event SET occurred_at = event_time")
        var options = ReportOptions()
        try change(&options)
        let page = try HTMLReport.load(options, on: base.connection)
        return (page, String(decoding: page.render(), as: UTF8.self))
    }

    /// Two apps, of which one logs no sends, over five days.
    static func sample() -> [Seed] {
        var seeds: [Seed] = []
        for index in 0..<300 {
            let at = Double(index) * 1400
            let campaign = ["spring", hostile, "autumn"][index % 3]
            let app = index % 5 == 0 ? "news" : "shop"
            func seed(_ type: EventType, _ delay: Double) -> Seed {
                Seed(type, "m\(index)", campaign: campaign, at: at + delay).with {
                    $0.app = app
                    $0.platform = ["ios", "android", "<b>"][index % 3]
                }
            }
            if app == "shop" { seeds.append(seed(.sent, 0)) }
            seeds.append(seed(.received, 2))
            if index % 4 == 0 { seeds.append(seed(.clicked, 2 + Double(index))) }
            if index % 9 == 0 { seeds.append(seed(.clicked, 4000)) }
        }
        return seeds
    }

    @Test func aPageIsWellFormedAndFetchesNothing() throws {
        for change in [
            { _ in }, { try $0.set("by", "campaign,platform") }, { try $0.set("by", "day") },
            { try $0.set("journeys", "never") }, { try $0.set("by-activity", "true") },
            { try $0.set("from", "2026-09-02") }, { try $0.set("tz", "America/St_Johns") },
            { try $0.set("top", "1") }, { try $0.set("app", "none<>") },
        ] as [(inout ReportOptions) throws -> Void] {
            let source = try Self.page(of: Self.sample(), change).source
            let document = try XMLText(source)
            #expect(document.count(of: "script") == 0)
            #expect(document.count(of: "section") >= 8)
            let without = source.replacing("xmlns=\"http://www.w3.org/1999/xhtml\"", with: "")
            for bad in ["http:", "https:", "<script", "src=", "href=", "url(", "@import", "NaN"] {
                #expect(!without.contains(bad), "\(bad)")
            }
            for value in document.attributes { #expect(!value.contains("nan")) }
        }
    }

    @Test func namesOfEventsStayText() throws {
        let (_, source) = try Self.page(of: Self.sample())
        let document = try XMLText(source)
        let shown = Self.hostile.replacing("\u{202E}", with: "\u{FFFD}")
            .replacing("\u{7}", with: "\u{FFFD}").replacing("\u{FFFE}", with: "\u{FFFD}")
        #expect(document.cells.contains(shown))
        #expect(document.cells.contains("<b>") && document.count(of: "b") == 5)
        #expect(!source.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
    }

    /// Numbers of the page are those of the reports it is made of, and these agree.
    @Test func tablesHaveTheNumbersOfTheReports() throws {
        let base = try ReportBase()
        try base.add(Self.sample())
        let page = try HTMLReport.load(ReportOptions(), on: base.connection)
        let document = try XMLText(String(decoding: page.render(), as: UTF8.self))
        var options = ReportOptions()
        let whole = try CampaignReport.load(options, on: base.connection)
        #expect(page.main.rows == whole.rows && page.main.totals == whole.totals)
        #expect(whole.rows.count == 6)
        for row in whole.rows + [whole.totals] {
            let isTotal = row.campaign == nil
            let cells = try #require(
                document.tables["Every row, and the totals over everything"]?.first {
                    isTotal
                        ? $0[0] == "totals"
                        : $0[0] == row.app && $0[1] == printable(row.campaign ?? "")
                })
            let counts: [ReportCount] = [
                .sent, .delivered, .clicked, .clicksTotal, .inboxOpened, .engaged,
            ]
            #expect(cells[2..<8] == counts.map { row[$0].map { "\($0)" } ?? "n/a" }[...])
            let rate = row[.ctrDelivered]
            #expect(cells[8] == percentText(rate.value) && cells[9] == intervalText(rate))
        }
        #expect(whole.totals[.sent] == nil && document.cells.contains("n/a"))

        options.journeys = .never
        for (name, dimension) in [("day", ReportDimension.day), ("platform", .platform)] {
            options.by = [dimension]
            let report = try CampaignReport.load(options, on: base.connection)
            let part = dimension == .day ? page.byTime : page.byPlatform
            #expect(part.rows == report.rows, "\(name)")
            #expect(part.totals[.delivered] == whole.totals[.delivered])
        }
        func sum(_ rows: [[String]]?, _ columns: Range<Int>) -> Int {
            (rows ?? []).flatMap { $0[columns] }.compactMap { Int($0) }.reduce(0, +)
        }
        let days = document.tables["Delivered and clicked by day"]
        #expect(days?.count == 5)
        #expect(sum(days, 1..<2) == 300 && sum(days, 2..<3) == 75 + 34 - 9)
        let week = document.tables["Clicks by hour of day and weekday"]
        #expect(week?.count == 24 && sum(week, 1..<8) == 75 + 34)
    }

    @Test func anEmptyReportHasNoNumbersThatNobodyKnows() throws {
        let (page, source) = try Self.page(of: [])
        let document = try XMLText(source)
        #expect(page.main.rows.isEmpty && document.count(of: "script") == 0)
        #expect(source.contains("No messages in this period.") && source.contains("n/a"))
        #expect(document.tables["The funnel"]?[0][1] == "n/a")
        #expect(!source.contains("NaN") && !source.contains("Infinity"))
        #expect(!source.contains("0.00\u{A0}%"))
    }

    @Test func shortPeriodsAreByHour() throws {
        let (page, source) = try Self.page(of: Self.sample()) {
            try $0.set("from", "2026-09-02")
            try $0.set("to", "2026-09-04")
        }
        #expect(page.byTime.by == [.hour] && source.contains("Engagement by hour"))
        #expect(try Self.page(of: Self.sample()).page.byTime.by == [.day])
    }

    @Test func theCurveOfTimeToOpenEndsAtAllThatWereTapped() throws {
        let (page, source) = try Self.page(
            of: (0..<10).flatMap { index in
                [
                    Seed(.received, "m\(index)"),
                    Seed(.clicked, "m\(index)", at: Double(1 + index * 10)),
                ]
            })
        let curve = try #require(OpenCurve(page.main.totals))
        #expect(curve.units == 10)
        #expect(curve.points.map(\.seconds) == [1, 2, 5, 10, 20, 30, 60, 120])
        #expect(curve.points.map(\.units) == [1, 1, 1, 1, 2, 3, 6, 10])
        let rows = try XMLText(source).tables["Messages tapped within a time of their receipt"]
        #expect(rows?.last == ["at all", "10", "100.00\u{A0}%"])
    }

    @Test func everyPlotHasWordsForThoseWhoDoNotSeeIt() throws {
        let document = try XMLText(try Self.page(of: Self.sample()).source)
        let images = document.elements.filter { $0.attributes["role"] == "img" }
        #expect(images.count == 7)
        for image in images {
            let ids = try #require(image.attributes["aria-labelledby"]).split(separator: " ")
            #expect(ids.count == 2)
            for id in ids { #expect(document.texts[String(id)]?.isEmpty == false, "\(id)") }
        }
    }

    @Test func coloursCanBeRead() {
        for palette in [Palette.light, .dark] {
            for ground in ["paper", "raised"] {
                for text in ["text", "muted", "warn"] {
                    #expect(Palette.contrast(palette[text], palette[ground]) >= 4.5, "\(text)")
                }
            }
            for mark in ["bar", "click", "axis"] {
                #expect(Palette.contrast(palette[mark], palette["paper"]) >= 3, "\(mark)")
            }
        }
        #expect(Palette.light.colours.map(\.name) == Palette.dark.colours.map(\.name))
        #expect(abs(Palette.contrast("#ffffff", "#000000") - 21) < 1e-9)
        #expect(abs(Palette.contrast("#777777", "#ffffff") - 4.478) < 1e-3)
    }

    @Test(arguments: [0, 1, 3, 7, 99, 100, 101, 12_345, 9e9])
    func scalesEndAtARoundNumberAboveAll(value: Double) {
        let scale = Scale(upTo: value, step: 1)
        #expect(scale.max >= value && scale.max <= max(value * 2, 1))
        #expect(scale.ticks.count >= 2 && scale.ticks.count <= 7)
        #expect(scale.ticks.allSatisfy { $0 == $0.rounded() })
        #expect(scale.share(scale.max) == 1 && scale.share(0) == 0)
    }

    @Test func slotsKnowTheirPlace() throws {
        let day = try #require(ReportSlot("2026-11-30"))
        #expect(day.weekday == 0 && day.isDay && day.short == "30 Nov" && day.month == "Nov 2026")
        let hour = try #require(ReportSlot("2026-11-29T23:00-03:30"))
        #expect(hour.weekday == 6 && hour.hour == 23 && hour.index == (day.index * 24) + 2)
        #expect(try #require(ReportSlot("1969-12-31")).weekday == 2)
        for bad in ["", "2026-13-01", "2026-11-30T07", "2026-11-30T07:00+0100"] {
            #expect(ReportSlot(bad) == nil)
        }
    }
}

/// What a parser of XML makes of a page.
final class XMLText: NSObject, XMLParserDelegate {
    struct Element {
        var name: String
        var attributes: [String: String]
        /// The id of the section that it is in; empty outside of one.
        var section: String
    }
    private(set) var elements: [Element] = []
    /// The text of elements, by their id.
    private(set) var texts: [String: String] = [:]
    /// The rows of tables, by their caption.
    private(set) var tables: [String: [[String]]] = [:]
    private var text = ""
    private var id: String?
    private var caption = ""
    private var row: [String] = []
    private var section = ""

    var cells: Set<String> { Set(tables.values.joined().joined()) }
    var attributes: [String] { elements.flatMap { $0.attributes.values } }
    func count(of name: String) -> Int { elements.filter { $0.name == name }.count }

    init(_ source: String) throws {
        super.init()
        let parser = XMLParser(data: Data(source.utf8))
        parser.delegate = self
        guard parser.parse() else {
            throw Failure(text: "line \(parser.lineNumber): \("\(parser.parserError as Any)")")
        }
    }

    struct Failure: Error { let text: String }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
        qualifiedName: String?, attributes: [String: String]
    ) {
        if name == "section" { section = attributes["id"] ?? "" }
        elements.append(Element(name: name, attributes: attributes, section: section))
        text = ""
        id = attributes["id"]
        if name == "tr" { row = [] }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    func parser(
        _ parser: XMLParser, didEndElement name: String, namespaceURI: String?,
        qualifiedName: String?
    ) {
        if let id { texts[id] = text }
        id = nil
        switch name {
        case "caption":
            caption = text
            tables[caption] = []
        case "td", "th": row.append(text)
        case "tr" where elements.last?.name != "th": tables[caption, default: []].append(row)
        default: break
        }
    }
}
