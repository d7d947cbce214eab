internal import CPostgres
import Glibc
import Platform

/// Waits for the server of one session, but not for ever.
///
/// The kernel notices a peer that has vanished. It does not notice one that is frozen, or a proxy in
/// between that has forgotten the other side: those still answer for their sockets.
@safe
struct Patience {
    // SAFETY: of the connection that makes this value for one of its calls.
    private let raw: OpaquePointer
    private let milliseconds: Int

    /// - Parameter milliseconds: How long neither side may take a byte; 0 is for ever.
    @unsafe
    init(_ raw: OpaquePointer, milliseconds: Int) {
        unsafe self.raw = raw
        self.milliseconds = milliseconds
    }

    /// Sends what is queued and waits until a result can be read, or the session is known to be gone.
    func waitForResult() throws(PostgresError) {
        while true {
            let left = unsafe PQflush(raw)
            guard left >= 0, unsafe PQconsumeInput(raw) == 1, unsafe PQisBusy(raw) == 1 else {
                return
            }
            try wait(isSending: left > 0)
        }
    }

    /// Waits until the kernel has all that is queued.
    ///
    /// - Returns: False when the session is gone.
    func flush() throws(PostgresError) -> Bool {
        while true {
            let left = unsafe PQflush(raw)
            if left <= 0 { return left == 0 }
            try wait(isSending: true)
            // A server that sends while nobody reads might itself not read.
            guard unsafe PQconsumeInput(raw) == 1 else { return false }
        }
    }

    /// The next message of a COPY TO STDOUT, as `PQgetCopyData` gives it.
    @unsafe
    func copyData(_ buffer: inout UnsafeMutablePointer<CChar>?) throws(PostgresError) -> Int {
        while true {
            let count = unsafe PQgetCopyData(raw, &buffer, 1)
            if count != 0 { return Int(count) }
            try wait(isSending: false)
            guard unsafe PQconsumeInput(raw) == 1 else { return -2 }
        }
    }

    /// That the server was silent for too long; the session is of no further use.
    func giveUp() -> PostgresError {
        // So that no later call waits again, and `isAlive` says what is so.
        shutdown(unsafe PQsocket(raw), Int32(SHUT_RDWR))
        return .connectionLost(
            reason: "the server says nothing for \(milliseconds) ms", sqlstate: nil)
    }

    private func wait(isSending: Bool) throws(PostgresError) {
        let events = isSending ? POLLIN | POLLOUT : POLLIN
        var socket = pollfd(fd: unsafe PQsocket(raw), events: Int16(events), revents: 0)
        let limit = milliseconds > 0 ? Int32(clamping: milliseconds) : -1
        // -1 is an interruption, and the caller looks again.
        guard unsafe poll(&socket, 1, limit) != 0 else { throw giveUp() }
    }
}
