internal import CSpawn
import Glibc
import Platform

/// The user that the server runs as, when that is not the caller.
struct ServerUser: Sendable {
    fileprivate let raw: tapline_user

    var uid: UInt32 { raw.uid }
    var gid: UInt32 { raw.gid }

    var name: String {
        // SAFETY: the C side always ends the name with NUL, within its array.
        unsafe withUnsafeBytes(of: raw.name) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    init?(named name: String) {
        var user = tapline_user()
        guard unsafe tapline_user_named(name, &user) else { return nil }
        raw = user
    }

    init?(uid: UInt32) {
        var user = tapline_user()
        guard unsafe tapline_user_numbered(uid, &user) else { return nil }
        raw = user
    }

    /// Whether this user may enter a directory by its path. Asks by becoming it, in a child.
    func canSearch(_ path: String) -> Bool {
        var user = raw
        return unsafe tapline_user_can_search(path, &user)
    }
}

/// Other programs, cut off from what this process has open, its signals and its terminal.
enum Spawn {
    /// Starts a program in a session of its own.
    ///
    /// - Parameters:
    ///   - arguments: The program's path, then its arguments.
    ///   - environment: `NAME=value` each; none keeps this process's.
    ///   - niceness: How far it stands back, unless the caller does so further; 0 is as the caller.
    ///   - output: Becomes its standard output and error; -1 is /dev/null.
    ///   - third: Becomes its descriptor 3, `fourth` its descriptor 4; -1 for none.
    /// - Returns: Its process id, which has to be waited for.
    static func start(
        _ arguments: [String], environment: [String] = [], user: ServerUser? = nil,
        niceness: Int = 0, output: Int32 = -1, third: Int32 = -1, fourth: Int32 = -1
    ) throws(SystemError) -> Int32 {
        var texts = unsafe arguments.map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.map { unsafe strdup($0) } + [nil]
        // SAFETY: allocated just above; the C side is done with them when it returns.
        defer { unsafe (texts + variables).forEach { unsafe free($0) } }
        var code: Int32 = 0
        var pid: Int32
        if var user = user?.raw {
            pid = unsafe tapline_spawn(
                arguments[0], &texts, &variables, &user, Int32(niceness), output, third,
                fourth, &code)
        } else {
            pid = unsafe tapline_spawn(
                arguments[0], &texts, &variables, nil, Int32(niceness), output, third,
                fourth, &code)
        }
        guard pid > 0 else { throw SystemError(code: code, action: "start", path: arguments[0]) }
        return pid
    }

    /// Runs a program to its end.
    ///
    /// - Returns: Whether it exited with 0, and all that it printed.
    static func run(
        _ arguments: [String], environment: [String] = [], user: ServerUser? = nil,
        third: Int32 = -1, fourth: Int32 = -1
    ) throws(SystemError) -> (isSuccess: Bool, output: String) {
        var ends: [Int32] = [-1, -1]
        guard unsafe tapline_pipe(&ends) else { throw .last("make a pipe") }
        defer { close(ends[0]) }
        let pid: Int32
        do throws(SystemError) {
            pid = try start(
                arguments, environment: environment, user: user, output: ends[1], third: third,
                fourth: fourth)
        } catch {
            close(ends[1])
            throw error
        }
        close(ends[1])
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe read(ends[0], &buffer, buffer.count)
            if count > 0 { output += buffer[..<count] }
            if count == 0 || count < 0 && errno != EINTR { break }
        }
        var status: Int32 = -1
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return (status == 0, String(decoding: output, as: UTF8.self))
    }

    /// Takes note of the end of a child, if it has ended.
    ///
    /// - Returns: Whether it is no child that lives.
    @discardableResult
    static func reap(_ pid: Int32) -> Bool {
        var status: Int32 = 0
        return unsafe waitpid(pid, &status, WNOHANG) != 0
    }

    /// Lets some time pass while another process gets on with its work.
    static func pause(milliseconds: Int32) { poll(nil, 0, milliseconds) }

    static func hasLocale(_ name: String) -> Bool { unsafe tapline_has_locale(name) }
}
