import Foundation
import Glibc
import Platform
import Postgres
import PostgresTesting
import Synchronization
import Testing

@Suite(.serialized) struct ClusterUsersTests {
    @Test func twoCommandsAtOnceShareOneServerAndTheLastEndsIt() throws {
        let rig = try ClusterRig()
        let commands = [try rig.makeCluster(), try rig.makeCluster()]
        let strings = Sync.Monitor<[String]>([])
        let threads = commands.map { command in
            Platform.Thread.start(name: "command") {
                if let conninfo = try? command.attach() { strings.withLock { $0.append(conninfo) } }
            }
        }
        for thread in threads { thread.join() }
        let found = strings.withLock { $0 }
        #expect(found.count == 2 && Set(found).count == 1)
        try commands[0].stop()
        #expect(commands[1].isHealthy)
        try commands[1].stop()
        #expect(try !rig.isServerAlive)
    }

    @Test func aCommandLeavesTheServerOfADaemonAlone() throws {
        let rig = try ClusterRig()
        let daemon = try rig.makeCluster()
        let conninfo = try daemon.start()
        let command = try rig.makeCluster()
        #expect(try command.attach() == conninfo)
        try command.stop()
        #expect(daemon.isHealthy)
        try daemon.stop()
        #expect(try !rig.isServerAlive)
    }

    @Test func aCommandCreatesNothingWhereItShouldNot() throws {
        let rig = try ClusterRig(subdirectory: "none")
        let command = try rig.makeCluster()
        #expect(throws: PostgresError.cluster(.noCluster(directory: rig.directory))) {
            try command.attach(isCreating: false)
        }
        #expect(!Directory.isDirectory(rig.directory))
    }

    @Test func aCommandWaitsNoLongerThanItsTime() throws {
        let rig = try ClusterRig()
        // Somebody is starting the server, for ever.
        let turn = try FileLock.tryTake(rig.directory + "/postgres.lock")
        let command = try rig.makeCluster()
        #expect(
            throws: PostgresError.cluster(.notReadyInTime(directory: rig.directory, seconds: 0))
        ) { try command.attach(waitSeconds: 0) }
        _ = consume turn
    }

    @Test func theServerOfAKilledDaemonLivesOnAndIsAdopted() throws {
        let rig = try ClusterRig()
        let daemon = try Daemon(rig)
        let pid = try #require(rig.postmaster)
        daemon.kill()
        // The end of the pipe shows that neither server nor watchdog keeps the daemon's output open.
        #expect(daemon.restOfOutput() == [])
        let next = try rig.makeCluster()
        _ = try next.start()
        #expect(rig.postmaster == pid)
        try next.stop()
        #expect(try !rig.isServerAlive)
    }

    @Test func theServerOfAKilledDaemonEndsItselfWhenNobodyComes() throws {
        let rig = try ClusterRig()
        let daemon = try Daemon(rig)
        let watchdog = try #require(rig.watchdogs.first)
        #expect(try ClusterRig.status(watchdog, "SigBlk") == " 0000000000000000")
        #expect(getsid(watchdog) == watchdog)
        let start = Clock.monotonic()
        daemon.kill()
        try rig.eventually("the watchdog ends the server") { try !rig.isServerAlive }
        #expect(Clock.monotonic() - start >= 1_000_000)
        try rig.eventually("the watchdog ends") {
            try FileLock.tryTake(rig.directory + "/postgres.watchdog") != nil
        }
        #expect(rig.postmaster == nil, "it was shut down, not killed")
    }

    @Test func aServerThatIsNeededIsNotEnded() throws {
        let rig = try ClusterRig()
        let daemon = try Daemon(rig)
        let command = try rig.makeCluster()
        _ = try command.attach()
        let pid = rig.postmaster
        daemon.kill()
        // Three times as long as the watchdog waits; the time has to pass for it to be wrong.
        poll(nil, 0, 3000)
        #expect(command.isHealthy && rig.postmaster == pid)
        try command.stop()
        #expect(try !rig.isServerAlive)
    }

    @Test func aKilledWatchdogIsReplacedAtTheNextStart() throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        _ = try cluster.start()
        let lock = rig.directory + "/postgres.watchdog"
        try rig.eventually("the watchdog watches") { try FileLock.tryTake(lock) == nil }
        try rig.eventually("the watchdog is killed") {
            for pid in try rig.watchdogs { Glibc.kill(pid, SIGKILL) }
            return try FileLock.tryTake(lock) != nil
        }
        _ = try cluster.start()
        try rig.eventually("another one watches") { try FileLock.tryTake(lock) == nil }
        try cluster.stop()
    }
}

/// Another process that has started the cluster as a daemon does.
final class Daemon {
    private let process = Process()
    private let output = Pipe()

    init(_ rig: ClusterRig) throws {
        let program = try #require(EmbeddedOptions.forTests.watchdogProgram)
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["daemon", rig.directory]
        process.standardOutput = output
        try process.run()
        let line = output.fileHandleForReading.readData(ofLength: 6)
        try #require(line == Data("ready\n".utf8))
    }

    deinit { if process.isRunning { kill() } }

    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal, "it ended by itself")
    }

    /// Everything up to the end of the pipe; nil when it has none in 20 s.
    func restOfOutput() -> [UInt8]? {
        let file = output.fileHandleForReading.fileDescriptor
        let deadline = Clock.deadline(inMilliseconds: 20_000)
        var (rest, piece): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 4096))
        while Clock.monotonic() < deadline {
            var poller = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&poller, 1, 100) > 0 else { continue }
            let count = unsafe read(file, &piece, piece.count)
            guard count > 0 else { return count == 0 ? rest : nil }
            rest += piece[..<count]
        }
        return nil
    }
}
