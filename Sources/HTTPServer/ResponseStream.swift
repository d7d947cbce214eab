internal import CMicrohttpd
import Platform

/// The body of an answer that is written piece by piece, from any thread, while the client reads it.
///
/// A piece that a slow client has no room for is not kept, and nothing ever waits.
@safe
package final class ResponseStream: Sendable {
    @safe private struct State {
        var bytes: [UInt8] = []
        var isFinished = false
        var isClosed = false
        // SAFETY: as in `Exchange`: not nil only while the connection is suspended. Whoever takes it
        // resumes it, once, under the lock.
        var suspended: OpaquePointer?
    }
    private let state = Sync.Monitor(State())
    private let bytesMax: Int

    /// Creates an empty stream, for ``Response/stream(_:headers:)``.
    ///
    /// - Parameter bytesMax: How much may wait for the client.
    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Adds a piece.
    ///
    /// - Returns: False when the client has not read enough of those before, or has gone, or the
    ///   stream is finished; nothing of the piece is sent then.
    @discardableResult
    package func tryWrite(_ piece: [UInt8]) -> Bool {
        state.withLock { state in
            guard !state.isFinished, !state.isClosed, state.bytes.count + piece.count <= bytesMax
            else { return false }
            state.bytes += piece
            Self.resume(&state)
            return true
        }
    }

    /// Ends the answer after what was written.
    package func finish() {
        state.withLock { state in
            state.isFinished = true
            Self.resume(&state)
        }
    }

    /// Whether a client may still read what is written.
    package var isOpen: Bool { state.withLock { !$0.isFinished && !$0.isClosed } }

    // What follows is for the server's threads.

    /// What comes next on the connection.
    enum Step: Equatable {
        case bytes(Int)
        case wait
        case end
    }

    /// Takes what is there; the connection is suspended when that is nothing yet.
    func take(into buffer: UnsafeMutableRawBufferPointer, _ connection: OpaquePointer) -> Step {
        state.withLock { state in
            guard !state.isClosed else { return .end }
            if state.bytes.isEmpty {
                if state.isFinished { return .end }
                unsafe state.suspended = connection
                unsafe MHD_suspend_connection(connection)
                return .wait
            }
            let count = min(buffer.count, state.bytes.count)
            unsafe buffer.copyBytes(from: state.bytes[..<count])
            state.bytes.removeFirst(count)
            return .bytes(count)
        }
    }

    /// Marks the stream as over; nothing is written any more.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.bytes = []
        }
    }

    private static func resume(_ state: inout State) {
        guard let connection = unsafe state.suspended else { return }
        unsafe state.suspended = nil
        unsafe MHD_resume_connection(connection)
    }
}

/// Joins a stream to the connection on which it is sent.
@safe
final class StreamReader {
    static let blockBytes = 16 * 1024
    // Values of macros that Swift does not see: MHD_CONTENT_READER_END_OF_STREAM and …_WITH_ERROR.
    private static let end = -1
    static let endWithError = -2

    private let stream: ResponseStream
    // SAFETY: libmicrohttpd reads a response only for the connection that it is queued on.
    private let raw: OpaquePointer
    private let connection: Connection
    private let registry: ConnectionRegistry

    init(
        _ stream: ResponseStream, _ raw: OpaquePointer, _ connection: Connection,
        _ registry: ConnectionRegistry
    ) {
        self.stream = stream
        unsafe self.raw = raw
        self.connection = connection
        self.registry = registry
    }

    /// The number of bytes given, or 0 with the connection suspended, or the end.
    ///
    /// Being asked shows that the client has read what came before. So the time it is given for that
    /// begins anew with each piece, and does not run while there is nothing to read.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard registry.move(connection, to: .writing) else { return Self.endWithError }
        switch unsafe stream.take(into: buffer, raw) {
        case .bytes(let count): return count
        case .end: return Self.end
        case .wait:
            _ = registry.move(connection, to: .waiting)
            return 0
        }
    }
}
