import Foundation
import Testing

extension SystemTests {
    /// Devices whose clocks are up to forty years off, from the request to the cell of the report.
    @Suite struct ClockTests {
        /// The rule that makes the time of an event; the codes are those of `time_rule`.
        enum Rule: Int { case device, corrected, server }

        /// A clock, and what is made of it with and without a time of sending.
        struct Clock: Sendable {
            let name: String
            /// What it is ahead of ours, in seconds.
            let ahead: Int
            let withSentAt: Rule
            let without: Rule
        }

        static let day = 86_400
        /// Of 365.25 days, as the rule counts ten of them.
        static let year = 31_557_600

        static let clocks = [
            Clock(name: "y-40", ahead: -40 * year, withSentAt: .corrected, without: .server),
            Clock(name: "y-11", ahead: -11 * year, withSentAt: .corrected, without: .server),
            Clock(
                name: "y-10-2d", ahead: -10 * year - 2 * day, withSentAt: .corrected,
                without: .server),
            Clock(
                name: "y-10+2d", ahead: -10 * year + 2 * day, withSentAt: .corrected,
                without: .device),
            Clock(name: "y-1", ahead: -year, withSentAt: .corrected, without: .device),
            Clock(name: "d-1", ahead: -day, withSentAt: .corrected, without: .device),
            Clock(name: "s-30", ahead: -30, withSentAt: .corrected, without: .device),
            Clock(name: "right", ahead: 0, withSentAt: .device, without: .device),
            Clock(name: "s+30", ahead: 30, withSentAt: .corrected, without: .device),
            Clock(name: "d+1", ahead: day, withSentAt: .corrected, without: .server),
            Clock(name: "y+1", ahead: year, withSentAt: .corrected, without: .server),
            Clock(name: "y+10", ahead: 10 * year, withSentAt: .corrected, without: .server),
            Clock(name: "y+40", ahead: 40 * year, withSentAt: .corrected, without: .server),
        ]

        /// How a client says when it sends.
        enum Sending: String, CaseIterable { case line, header, none }

        /// The receipt was an hour before the sending, the tap a minute after it; the campaign is the
        /// clock's own.
        static func lines(_ clock: Clock, _ sending: Sending, sentAt: Int) -> [String] {
            let name = "\(clock.name)-\(sending)"
            let sent = sending == .line ? ",\"sent_at\":\(sentAt)" : ""
            return [("received", 3600), ("clicked", 3540)].map { type, age in
                "{\"type\":\"\(type)\",\"message_uid\":\"\(name)\",\"device_id\":\"d\","
                    + "\"campaign_id\":\"\(name)\",\"occurred_at\":\(sentAt - age)\(sent)}"
            }
        }

        /// Sends what all clocks have to say; the counts of the verdicts.
        static func send(_ app: App, now: Int, shift: Int = 0) throws -> [String: Int64] {
            var counts: [String: Int64] = [:]
            for clock in clocks {
                for sending in Sending.allCases {
                    let sentAt = now + clock.ahead + shift
                    let body = lines(clock, sending, sentAt: sentAt).joined(separator: "\n")
                    var request = Request.events(body, key: app.key, query: "?ack=stored")
                    if sending == .header { request = request.with("X-Sent-At", "\(sentAt)") }
                    let answer = try app.daemon.send(request)
                    #expect(answer.status == 200, "\(answer.text)")
                    for name in ["accepted", "duplicates", "conflicts", "rejected"] {
                        counts[name, default: 0] += try answer.json[name].int ?? -1
                    }
                }
            }
            return counts
        }

        static func report(_ app: App) throws -> [String: JSON] {
            let report = try ReportTests.json(app, ["--by", "campaign,day"])
            #expect(report["totals"]["delivered"] == .int(Int64(clocks.count * 3)))
            return Dictionary(
                grouping: report["campaigns"].items, by: { $0["campaign_id"].text ?? "" }
            ).mapValues {
                #expect($0.count == 1, "a message has one first day: \($0)")
                return $0[0]
            }
        }

        @Test func everyClockHasItsVerdictTimeRuleAndCell() throws {
            let app = try Shared.app()
            let now = Int(Date().timeIntervalSince1970)
            let events = Int64(Self.clocks.count * 3 * 2)
            let first = try Self.send(app, now: now)
            #expect(first["accepted"] == events && first.values.reduce(0, +) == events, "\(first)")

            func microseconds(_ column: String) -> String {
                "(extract(epoch FROM \(column)) * 1000000)::bigint"
            }
            let rows = try app.stored(
                "campaign_id, type, time_rule, \(microseconds("event_time")), "
                    + "\(microseconds("received_at")), \(microseconds("occurred_at")), "
                    + "to_char(event_time AT TIME ZONE 'UTC', 'YYYY-MM-DD')")
            #expect(rows.count == Int(events))
            let report = try Self.report(app)
            for clock in Self.clocks {
                for sending in Sending.allCases {
                    let name = "\(clock.name)-\(sending)"
                    let own = rows.filter { $0[0] == name }.map { $0.map { $0 ?? "" } }
                        .sorted { $0[5] < $1[5] }
                    try #require(own.count == 2)
                    for (row, age) in zip(own, [3600, 3540]) {
                        let numbers = row[2...5].compactMap { Int($0) }
                        let (rule, time, received, occurred) = (
                            numbers[0], numbers[1], numbers[2], numbers[3]
                        )
                        let sentAt = now + clock.ahead
                        #expect(occurred == (sentAt - age) * 1_000_000, "\(name): as it was sent")
                        var expected = sending == .none ? clock.without : clock.withSentAt
                        if expected == .device, sending != .none,
                            abs(received - sentAt * 1_000_000) > 2_000_000
                        {
                            // Our own machine took its time: the clock is off by as much.
                            expected = .corrected
                        }
                        #expect(rule == expected.rawValue, "\(name): \(row)")
                        switch expected {
                        case .device: #expect(time == occurred, "\(name): \(row)")
                        case .corrected:
                            #expect(time == received - age * 1_000_000, "\(name): \(row)")
                        case .server: #expect(time == received, "\(name): \(row)")
                        }
                    }
                    let cell = try #require(report[name], "\(name) has no row")
                    #expect(cell["day"].text == own[0][6], "\(name): \(cell)")
                    #expect(cell["delivered"] == .int(1) && cell["clicked"] == .int(1), "\(name)")
                    // Late is what arrives a day after its time; a time of our own is never late.
                    let isLate =
                        sending == .none && clock.without == .device && clock.ahead <= -Self.day
                    #expect(cell["late"] == .int(isLate ? 2 : 0), "\(name): \(cell)")
                    // The minute between receipt and tap is there with any clock, unless its times
                    // are not believed at all.
                    let isBelieved = sending != .none || clock.without != .server
                    #expect(
                        cell["time_to_open"]["p50"].number == (isBelieved ? 60 : nil),
                        "\(name): \(cell)")
                }
            }

            // The same taps again, from clocks that have been set meanwhile: nothing is new, and the
            // report stays.
            let second = try Self.send(app, now: now, shift: 3 * Self.year)
            #expect(second["duplicates"] == events, "\(second)")
            #expect(second.values.reduce(0, +) == events, "\(second)")
            #expect(try Self.report(app) == report)
        }
    }
}
