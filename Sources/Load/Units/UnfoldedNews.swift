import CPlatform
import Event

/// Events that other daemons have stored in the open segment, as they wrote them down.
///
/// They stay so until an event of this daemon is of the same message: few ever are met so, and to find
/// an event here takes a fifth of the time and of the memory that folding it into the tables does.
/// Messages are found by chains, as all that is ever asked is whether one is here.
struct UnfoldedNews: ~Copyable {
    /// A batch as it was written.
    private struct Part {
        /// The number of its first event, counted over all parts.
        let first: Int
        let bytes: [UInt8]
        let reader: BatchNews.Reader
    }

    /// An event in the chain of those whose messages have the same lowest bits.
    private struct Link: BitwiseCopyable {
        /// The one before it, by its number and 1; 0 for none.
        var next: UInt32
        /// The lowest bits of the message.
        let tag: UInt32

        /// Of an event that is not here any more.
        static let gone = UInt32.max
        var isGone: Bool { next == Self.gone }
    }

    private var parts: [Part] = []
    /// By the lowest bits of messages the newest event of the chain, as ``Link/next`` has it.
    private var heads: [UInt32] = []
    private var links: [Link] = []
    /// How many events there are.
    private(set) var count = 0

    /// Forgets all events and keeps the memory.
    mutating func removeAll() {
        guard !parts.isEmpty else { return }
        parts.removeAll(keepingCapacity: true)
        links.removeAll(keepingCapacity: true)
        for index in heads.indices { heads[index] = 0 }
        count = 0
    }

    /// Adds a batch.
    ///
    /// - Returns: The messages whose events cannot stay here, as some of them say something of others, and
    ///   0 if some are of no message.
    mutating func add(_ news: [UInt8], _ reader: BatchNews.Reader) -> [UInt64] {
        let bytes = news.rawSpan
        let first = links.count
        let total = first + reader.count
        precondition(total < Int(Link.gone), "too many events in a segment")
        if total > heads.count { grow(to: total) }
        links.reserveCapacity(total)
        var linked: [UInt64] = []
        for number in 0..<reader.count {
            if number &+ Decision.lookAhead < reader.count {
                prefetch(reader.message(number &+ Decision.lookAhead, bytes))
            }
            let message = reader.message(number, bytes)
            if reader.isLinked(number, bytes) { linked.append(message) }
            link(UInt32(truncatingIfNeeded: message))
        }
        parts.append(Part(first: first, bytes: news, reader: reader))
        count += reader.count
        return linked
    }

    /// Takes out all events of the messages of some events, and of the inbox messages that these name.
    mutating func take(for events: [UnitEvent]) -> [BatchNews.Reader.Entry] {
        var taken: [BatchNews.Reader.Entry] = []
        for index in events.indices {
            if index &+ 2 &* Decision.lookAhead < events.count {
                prefetch(events[index &+ 2 &* Decision.lookAhead].unit.message)
            }
            if index &+ Decision.lookAhead < events.count {
                prefetchChain(events[index &+ Decision.lookAhead].unit.message)
            }
            if count == 0 { break }
            take(events[index].unit.message, &taken)
            if let inbox = events[index].inbox { take(inbox.message, &taken) }
        }
        return taken
    }

    /// Takes out all events of some messages.
    mutating func take(_ messages: some Sequence<UInt64>) -> [BatchNews.Reader.Entry] {
        var taken: [BatchNews.Reader.Entry] = []
        for message in messages where count > 0 { take(message, &taken) }
        return taken
    }

    /// Takes out all events, but for those with a device that are the only one of their message here, and
    /// whose message is not among `known`.
    mutating func takeCrowded(
        _ known: borrowing FlatTable<HashKey, MessageState>
    ) -> [BatchNews.Reader.Entry] {
        var taken: [BatchNews.Reader.Entry] = []
        for index in parts.indices {
            let part = parts[index]
            for number in 0..<part.reader.count {
                if number &+ Decision.lookAhead < part.reader.count {
                    let ahead = number &+ Decision.lookAhead
                    known.prefetch(HashKey(hash: part.reader.message(ahead, part.bytes.rawSpan)))
                    prefetchLink(links[part.first &+ ahead].next)
                }
                if links[part.first &+ number].isGone { continue }
                let message = part.reader.message(number, part.bytes.rawSpan)
                if part.reader.isLoose(number, part.bytes.rawSpan)
                    || known.slot(of: HashKey(hash: message)) != nil
                    || hasEarlier(than: part.first &+ number, message)
                {
                    take(message, &taken)
                }
            }
        }
        return taken
    }

    /// Whether there are events of a message.
    func holds(_ message: UInt64) -> Bool {
        count > 0 && find(message, from: heads[bucket(UInt32(truncatingIfNeeded: message))]) != nil
    }

    /// Calls `body` with the message of each event.
    func forEachMessage(_ body: (UInt64) -> Void) {
        for part in parts {
            for number in 0..<part.reader.count where !links[part.first &+ number].isGone {
                body(part.reader.message(number, part.bytes.rawSpan))
            }
        }
    }

    /// Calls `body` with the key of each event, and what tells a conflict from a duplicate.
    func forEachKey(_ body: (Identity, EventContent) -> Void) {
        for part in parts {
            let bytes = part.bytes.rawSpan
            for number in 0..<part.reader.count where !links[part.first &+ number].isGone {
                let (key, content) = part.reader.key(number, bytes)
                body(key, content)
            }
        }
    }

    // MARK: Chains

    private func bucket(_ tag: UInt32) -> Int { Int(tag) & (heads.count &- 1) }

    private mutating func link(_ tag: UInt32) {
        let bucket = bucket(tag)
        links.append(Link(next: heads[bucket], tag: tag))
        heads[bucket] = UInt32(truncatingIfNeeded: links.count)
    }

    private mutating func grow(to total: Int) {
        var size = max(heads.count, 1 << 14)
        while size < total { size *= 2 }
        heads = Array(repeating: 0, count: size)
        for index in links.indices where !links[index].isGone {
            let bucket = bucket(links[index].tag)
            links[index].next = heads[bucket]
            heads[bucket] = UInt32(truncatingIfNeeded: index &+ 1)
        }
    }

    private func prefetch(_ message: UInt64) {
        let bucket = bucket(UInt32(truncatingIfNeeded: message))
        // SAFETY: only a hint to memory; the place is in the array.
        unsafe heads.withUnsafeBufferPointer { heads in
            if let first = heads.baseAddress { unsafe tapline_prefetch(first + bucket) }
        }
    }

    /// Asks memory for the first link of a message's chain.
    private func prefetchChain(_ message: UInt64) {
        guard !heads.isEmpty else { return }
        prefetchLink(heads[bucket(UInt32(truncatingIfNeeded: message))])
    }

    /// Asks memory for the link that one names as the next.
    private func prefetchLink(_ next: UInt32) {
        guard next != 0, next != Link.gone else { return }
        // SAFETY: only a hint to memory; the place is in the array.
        unsafe links.withUnsafeBufferPointer { links in
            if let first = links.baseAddress {
                unsafe tapline_prefetch(first + (Int(next) &- 1))
            }
        }
    }

    /// The place of an event, counted over all parts.
    private func message(_ place: Int) -> UInt64 {
        let part = parts[part(of: place)]
        return part.reader.message(place &- part.first, part.bytes.rawSpan)
    }

    private func part(of place: Int) -> Int {
        var (low, high) = (0, parts.count &- 1)
        while low < high {
            let middle = (low &+ high &+ 1) / 2
            if parts[middle].first <= place { low = middle } else { high = middle &- 1 }
        }
        return low
    }

    /// The first event of a message in the rest of a chain, by its place.
    private func find(_ message: UInt64, from head: UInt32) -> Int? {
        let tag = UInt32(truncatingIfNeeded: message)
        var next = head
        while next != 0 {
            let place = Int(next) &- 1
            if links[place].tag == tag, self.message(place) == message { return place }
            next = links[place].next
        }
        return nil
    }

    private func hasEarlier(than place: Int, _ message: UInt64) -> Bool {
        find(message, from: links[place].next) != nil
    }

    /// Takes out the events of a message, in their order.
    private mutating func take(_ message: UInt64, _ taken: inout [BatchNews.Reader.Entry]) {
        let tag = UInt32(truncatingIfNeeded: message)
        let bucket = bucket(tag)
        var next = heads[bucket]
        guard next != 0 else { return }
        let start = taken.count
        /// The place of the one that stays before the present one in the chain.
        var before: Int?
        while next != 0 {
            let place = Int(next) &- 1
            let link = links[place]
            next = link.next
            guard link.tag == tag, self.message(place) == message else {
                before = place
                continue
            }
            if let before { links[before].next = next } else { heads[bucket] = next }
            links[place].next = Link.gone
            let part = parts[part(of: place)]
            taken.append(part.reader.entry(place &- part.first, part.bytes.rawSpan))
            count &-= 1
        }
        taken[start...].reverse()
    }
}
