internal import CIsal
internal import Glibc

/// Inflates one gzip body that arrives in pieces, up to a limit.
///
/// A body is one or more gzip members (RFC 1952 §2.2), optionally followed by zero bytes. Nothing
/// of a body may be used before ``finish()`` has returned: output appears before the checksum of
/// its member is known. After an error the stream is of no further use.
///
/// ISA-L's igzip inflates and checks the trailer (CRC-32 and length); ``MemberHeader`` reads the
/// header. A stream holds 86 KiB, ISA-L's window included.
@safe
package struct InflateStream: ~Copyable {
    private enum State {
        case memberStart  // before the first byte of a first or further member
        case header  // inside the header of a member
        case data  // inside the deflate data or the trailer of a member
        case padding  // zero bytes after the last member
    }

    /// The most bytes that all members together may inflate to.
    package let limit: Int
    /// The bytes inflated so far.
    package private(set) var inflatedCount = 0
    /// The members that were read whole, with a good checksum.
    package private(set) var memberCount = 0
    /// Whether the last piece had more in it than was asked for.
    package private(set) var isPaused = false

    // The least room for one call. ISA-L copies 32 KiB at the end of each, so it is given all there is.
    private static let spaceBytesMin = 64 * 1024
    private var state = State.memberStart
    private var header = MemberHeader()
    // SAFETY: allocated in `init`, freed in `deinit`, and never leaves this file.
    private let isal: UnsafeMutablePointer<inflate_state>

    /// Makes a stream that inflates at most `limit` bytes.
    ///
    /// - Throws: ``GzipError/outOfMemory``.
    package init(limit: Int) throws(GzipError) {
        precondition(limit >= 0, "limit \(limit) is negative")
        // Not `allocate`, which ends the process when there is no memory. Not cleared either: ISA-L
        // sets what it will read, and most of the state is tables and window that small bodies
        // never touch.
        guard let memory = unsafe malloc(MemoryLayout<inflate_state>.size) else {
            throw .outOfMemory
        }
        self.limit = limit
        // SAFETY: malloc aligns for any C type; the state is plain data.
        unsafe self.isal = memory.assumingMemoryBound(to: inflate_state.self)
    }

    deinit { unsafe free(isal) }

    /// Inflates the next piece of the body and appends what it yields to `output`.
    ///
    /// - Parameters:
    ///   - piece: Bytes as they were received; a piece may end anywhere.
    ///   - output: Receives the inflated bytes, never more than ``limit`` in all.
    ///   - countMax: Inflating pauses when `output` holds so many bytes; a few bytes of a body can
    ///     be a thousand times as many.
    /// - Returns: The bytes of `piece` that were used: all of them, or it paused. The next call goes on
    ///   with the rest, which may be empty.
    /// - Throws: ``GzipError``; `output` then holds an unchecked prefix of the body.
    @discardableResult
    package mutating func push(
        _ piece: Span<UInt8>, into output: inout [UInt8], upTo countMax: Int = .max
    ) throws(GzipError) -> Int {
        var offset = 0
        while offset < piece.count || isPaused {
            switch state {
            case .padding:
                guard piece[offset] == 0 else { throw .trailingGarbage }
                offset += 1
            case .memberStart:
                let first = piece[offset]
                if first == 0x1F {
                    state = .header
                    header = MemberHeader()
                } else if memberCount == 0 {
                    throw .notGzip
                } else if first == 0 {
                    state = .padding
                } else {
                    throw .trailingGarbage
                }
            case .header:
                guard try header.read(piece, at: &offset) else { return offset }
                unsafe isal_inflate_init(isal)
                // No header; the trailer is read and verified.
                unsafe isal.pointee.crc_flag = UInt32(ISAL_GZIP_NO_HDR_VER)
                state = .data
            case .data:
                offset += try inflateData(piece.extracting(offset...), into: &output, countMax)
                if isPaused { return offset }
            }
        }
        return offset
    }

    /// Checks that the body ended where a body may end.
    ///
    /// - Throws: ``GzipError/truncated``, or ``GzipError/notGzip`` for an empty body.
    package func finish() throws(GzipError) {
        if isPaused || state == .header || state == .data { throw .truncated }
        if memberCount == 0 { throw .notGzip }
    }

    /// Feeds ISA-L inside one member.
    ///
    /// - Returns: The bytes used, all of `input` unless the member ended before.
    private mutating func inflateData(
        _ input: Span<UInt8>, into output: inout [UInt8], _ countMax: Int
    ) throws(GzipError) -> Int {
        try unsafe input.withUnsafeBufferPointer { bytes throws(GzipError) in
            // avail_in is 32 bits, read as signed in places; the caller comes again for the rest.
            let offered = min(bytes.count, 1 << 30)
            // SAFETY: ISA-L only reads through next_in, and only inside this closure.
            unsafe isal.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
            unsafe isal.pointee.avail_in = UInt32(offered)
            return offered - (try inflateOffered(into: &output, countMax))
        }
    }

    /// Runs ISA-L over what `next_in` offers.
    ///
    /// - Returns: The bytes left over, more than 0 only when the member ended before them or it paused.
    private mutating func inflateOffered(
        into output: inout [UInt8], _ countMax: Int
    ) throws(GzipError) -> Int {
        isPaused = false
        while true {
            if output.count >= countMax {
                isPaused = true
                return unsafe Int(isal.pointee.avail_in)
            }
            // One byte over the limit is asked for, so that a body of exactly the limit can still
            // reach its trailer and a longer one shows itself.
            let room = max(Self.spaceBytesMin, output.capacity - output.count)
            let space = min(room, limit - inflatedCount + 1, countMax - output.count, 1 << 30)
            let offered = unsafe isal.pointee.avail_in
            let (status, produced) = inflateOnce(space: space, into: &output)
            guard inflatedCount + produced <= limit else { throw .tooLarge(limit: limit) }
            inflatedCount += produced
            // After an error avail_in means nothing: ISA-L leaves it wrapped below zero at times.
            guard status == ISAL_DECOMP_OK else { throw .corrupt(reason: Self.reason(status)) }
            let left = unsafe isal.pointee.avail_in
            if unsafe isal.pointee.block_state == ISAL_BLOCK_FINISH {
                memberCount += 1
                state = .memberStart
                return Int(left)
            }
            // Room left in the output means that ISA-L has no more to say about this input.
            if left == 0, produced < space { return 0 }
            // No progress with input left should not happen; without this it would be a loop.
            if left == offered, produced == 0 { throw .corrupt(reason: "no progress") }
        }
    }

    /// Calls ISA-L once and appends up to `space` bytes to `output`, never beyond the limit.
    ///
    /// - Returns: ISA-L's status, and the bytes it produced, also one that was not appended.
    private func inflateOnce(space: Int, into output: inout [UInt8]) -> (Int32, produced: Int) {
        var status: Int32 = 0
        var produced = 0
        output.append(addingCapacity: space) { span in
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                // SAFETY: the buffer has room for `space` bytes after the first `count`; ISA-L
                // writes at most avail_out of them and keeps its window itself.
                unsafe isal.pointee.next_out = buffer.baseAddress! + count
                unsafe isal.pointee.avail_out = UInt32(space)
                status = unsafe isal_inflate(isal)
                produced = unsafe space - Int(isal.pointee.avail_out)
                count += min(produced, limit - inflatedCount)
            }
        }
        return (status, produced)
    }

    private static func reason(_ status: Int32) -> String {
        switch status {
        case ISAL_INVALID_BLOCK: "invalid block"
        case ISAL_INVALID_SYMBOL: "invalid code"
        case ISAL_INVALID_LOOKBACK: "invalid distance too far back"
        case ISAL_INCORRECT_CHECKSUM: "incorrect data check"
        default: "ISA-L error \(status)"
        }
    }
}
