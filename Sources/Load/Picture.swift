import Event

/// What one daemon knows of the database: everything of the open segment, and a filter for each
/// closed one.
///
/// It mirrors the database as of ``batch``; the loader brings it up to date under the turn lock
/// before it decides. It is a function of the events there, so it is thrown away after every doubt
/// and read again.
final class Picture {
    /// The newest batch whose rows are known here, and its time in the database: together they
    /// tell whether a database still has the history that this mirrors.
    var batch: Int64 = -1
    var storedAt: Int64 = 0
    /// The generation of cells and special units that the states are of.
    var generation: Int64 = -1
    /// The open segment; nil while it is changed by a transaction whose end is not known.
    private var open: OpenBox?
    /// The others.
    let closed: ClosedSegments
    /// The device halves of the test devices.
    var testDevices: Set<UInt64> = []

    init(identities: IdentityFiles? = nil) { closed = ClosedSegments(identities: identities) }

    deinit { closed.settle() }

    /// Whether each button opens the app, of those that are known.
    var buttons: [ButtonKey: Bool] = [:]

    /// Whether any device is known in the database; it stays so.
    var hasDevices = false

    /// The number of the open segment, if it is known.
    var openNumber: Int? { open?.segment.number }

    /// Events of the open segment.
    var openRows: Int { open?.segment.rows ?? 0 }

    /// Takes the open segment out, to change it.
    func takeOpen() -> OpenBox? {
        defer { open = nil }
        return open
    }

    func putOpen(_ box: OpenBox) { open = box }

    /// Forgets the open segment, so that it is read again.
    func forget() {
        open = nil
        batch = -1
    }
}

/// Holds an open segment, which is too large to be handed around.
final class OpenBox {
    var segment: OpenSegment

    init(number: Int) { segment = OpenSegment(number: number) }

    /// Adds a row of a batch that is to be stored.
    func add(
        _ row: Int, of batch: borrowing LoadBatch, _ labels: inout BatchLabelMap,
        _ older: inout OlderUnits, _ fold: inout Fold
    ) {
        // One access of the box a row: that nobody else has it is checked at each.
        segment.add(row, of: batch, &labels, &older, &fold)
    }
}

extension OpenSegment {
    fileprivate mutating func add(
        _ row: Int, of batch: borrowing LoadBatch, _ labels: inout BatchLabelMap,
        _ older: inout OlderUnits, _ fold: inout Fold
    ) {
        if row &+ Decision.lookAhead < batch.count {
            prefetch(batch.events[row &+ Decision.lookAhead])
        }
        let (campaign, profile) = labels.labels(ofRow: row, batch, &self)
        add(batch.events[row], campaign: campaign, profile: profile, old: &older, to: &fold)
        addKey(batch.events[row].key, batch.contents[row])
    }
}
