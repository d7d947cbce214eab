import Event
import Ingest
import Platform
import PostgresTesting
import Testing

@testable import Load

/// What is kept of other daemons' events until one of this daemon meets them.
@Suite struct UnfoldedNewsTests {
    private typealias Dice = CellTests.Dice

    /// A batch as another daemon writes it.
    private static func news(_ batch: borrowing LoadBatch) -> [UInt8] {
        let writer = OpenBox(number: 1)
        var older = OlderUnits()
        var fold = Fold(isWriting: true)
        var buffer: [UInt8] = []
        fold.news = BatchNews(capacity: 1, reusing: &buffer)
        var labels = BatchLabelMap(batch)
        for row in 0..<batch.count { writer.add(row, of: batch, &labels, &older, &fold) }
        return fold.news?.finish(writer.segment) ?? []
    }

    @Test(arguments: 0..<40) func eachEventComesOutOnceAndInItsOrder(seed: UInt64) throws {
        var dice = Dice(source: KeySource(state: seed))
        var world = CellTests.World(&dice)
        let open = OpenBox(number: 1)
        /// What has to be there, in its order.
        var model: [UnitEvent] = []
        var stored: Set<String> = []
        func taken(_ messages: Set<UInt64>) -> [Identity] {
            defer { model.removeAll { messages.contains($0.unit.message) } }
            return model.filter { messages.contains($0.unit.message) }.map(\.key)
        }
        func isSame(_ entries: [BatchNews.Reader.Entry], _ keys: [Identity]) -> Bool {
            // In order are the events of one message; which message comes first is no matter.
            let order = Dictionary(grouping: entries, by: \.event.unit.message)
            let known = Dictionary(grouping: keys.indices, by: { keys[$0] })
            return entries.count == keys.count
                && order.values.allSatisfy { group in
                    let places = group.map { known[$0.event.key]?.first ?? -1 }
                    return places == places.sorted() && !places.contains(-1)
                }
        }
        for step in 0..<UInt64(30) {
            if dice.chance(0.6) {
                let lines = (0..<Int.random(in: 1..<60, using: &dice)).map { _ in
                    world.line(&dice)
                }
                // What is stored is so once.
                let batch = try CellTests.batch(
                    Set(lines).subtracting(stored).sorted(), mark: step + 1)
                stored.formUnion(lines)
                let bytes = Self.news(batch)
                let read = unsafe BatchNews.Reader(bytes.span.bytes, &open.segment)
                let reader = try #require(read)
                let linked = open.segment.unfolded.add(bytes, reader)
                model += batch.events
                let expected = batch.events.filter { $0.unit.message == 0 || $0.inbox != nil }
                #expect(Set(linked) == Set(expected.map(\.unit.message)))
                let entries = open.segment.unfolded.take(linked)
                let isRight = isSame(entries, taken(Set(linked)))
                #expect(isRight)
            }
            #expect(open.segment.unfolded.count == model.count)
            var known: [UInt64] = []
            open.segment.unfolded.forEachMessage { known.append($0) }
            #expect(known == model.map(\.unit.message))
            let other = try CellTests.batch((0..<3).map { _ in world.line(&dice) }, mark: 1)
            let messages = Set(other.events.map(\.unit.message))
            for message in messages {
                #expect(
                    open.segment.unfolded.holds(message)
                        == model.contains { $0.unit.message == message })
            }
            if dice.chance(0.4) {
                let wanted = messages.union(other.events.compactMap(\.inbox?.message))
                let entries = open.segment.unfolded.take(for: other.events)
                let isRight = isSame(entries, taken(wanted))
                #expect(isRight)
            } else if dice.chance(0.2) {
                let counts = Dictionary(grouping: model, by: \.unit.message)
                let crowded = counts.filter { $0.value.count > 1 || $0.value[0].unit.device == 0 }
                let entries = open.segment.takeCrowded()
                let isRight = isSame(entries, taken(Set(crowded.keys)))
                #expect(isRight)
            } else if dice.chance(0.1) {
                open.segment.unfolded.removeAll()
                model = []
            }
        }
    }

    @Test func eventsOfOthersAreFoldedWhenTheirMessageIsMet() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.alwaysWritesNews = true
        var first = try CellTests.session(fixture, settings)
        var second = try CellTests.session(fixture, settings)
        _ = try second.load(CellTests.batch([CellTests.World.line(0)], mark: 1))
        _ = try first.load(CellTests.batch((1..<5).map { CellTests.World.line($0) }, mark: 1))
        second.readAhead()
        func state(_ session: borrowing LoadSession) throws -> [Int] {
            let box = try #require(session.picture.takeOpen())
            defer { session.picture.putOpen(box) }
            return [box.segment.units.count, box.segment.unfolded.count, box.segment.rows]
        }
        let kept = try state(second)
        #expect(kept == [1, 4, 5])
        let met = try CellTests.batch([CellTests.World.line(3)], mark: 2)
        #expect(try second.load(met) == [.duplicate])
        let folded = try state(second)
        #expect(folded == [2, 3, 5])
    }
}
