import JSONLines
import Testing

@testable import Event

struct EventTypeTests {
    private func type(_ word: String) -> EventType { EventType(word: Array(word.utf8).rawSpan) }

    @Test func everyKnownWordNamesItsTypeInAnyCase() {
        for known in EventType.allCases where known != .custom {
            let word = "\(known.word)"
            #expect(type(word) == known)
            #expect(type(word.uppercased()) == known)
            #expect(type(word + "x") == .custom)
            #expect(
                type(String(word.dropLast())) == .custom || word == "clicked" || word == "dismissed"
            )
        }
    }

    @Test(
        arguments: [
            ("pushreceived", .received), ("push_receive", .received), ("Delivered", .received),
            ("clickthru", .clicked), ("CLICK", .clicked), ("open", .clicked), ("opened", .clicked),
            ("button", .action), ("dismiss", .dismissed), ("inboxOpen", .inboxOpen), ("", .custom),
            ("custom", .custom), ("inbox-open", .custom), ("page_view", .custom),
            ("s\0nt", .custom),
            ("SENT\u{E9}", .custom),
        ] as [(String, EventType)])
    func anAliasNamesItsType(word: String, expected: EventType) {
        #expect(type(word) == expected)
    }

    @Test func codesAreThoseOfTheSchema() {
        #expect(EventType.allCases.map(\.rawValue) == Array(0...16))
        #expect(EventType.clicked.rawValue == 7)
        #expect(EventType.inboxDeleted.rawValue == 13)
        #expect(EventType.allCases.filter(\.isStatus).map(\.rawValue) == Array(1...13))
        #expect(EventType.allCases.filter(\.isInboxStatus).map(\.rawValue) == Array(10...13))
    }
}

struct DigestTests {
    /// FIPS 180-4's example "abc".
    @Test func theDigestIsThatOfTheStandard() {
        let digest = Digest(Array("abc".utf8).rawSpan)
        #expect(digest.high == 0xBA78_16BF_8F01_CFEA)
        #expect(digest.low == 0x4141_40DE_5DAE_2223)
    }
}
