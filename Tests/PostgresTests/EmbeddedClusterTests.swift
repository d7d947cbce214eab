import Glibc
import Platform
import Postgres
import PostgresTesting
import Testing

@Suite(.serialized) struct EmbeddedClusterTests {
    @Test func startStopAndStartKeepTheData() throws {
        let rig = try ClusterRig()
        let first = try rig.makeCluster()
        let conninfo = try first.start()
        #expect(first.isHealthy)
        let pid = rig.postmaster
        do {
            let connection = try PostgresConnection(conninfo: conninfo)
            try connection.execute("CREATE TABLE t AS SELECT 42::int8 AS n")
        }
        #expect(try first.start() == conninfo && rig.postmaster == pid)
        try first.stop()
        #expect(!first.isHealthy)
        #expect(try !rig.isServerAlive)
        #expect(throws: PostgresError.cluster(.cancelled)) { try first.start() }

        let second = try rig.makeCluster()
        let connection = try PostgresConnection(conninfo: second.start())
        #expect(try connection.query("SELECT n FROM t").int64(0, 0) == 42)
        try second.stop()
        #expect(try !rig.isServerAlive)
    }

    /// From a thread that stands back further, too: a server that is started again is no other.
    @Test(arguments: [(0, 10), (10, 10), (15, 15)])
    func theServerAndItsSessionsStandBack(caller: Int, expected: Int) throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        let started = Sync.Monitor<Result<String, PostgresError>?>(nil)
        Thread.start(name: "starter", niceness: caller) {
            let result = Result { () throws(PostgresError) in try cluster.start() }
            started.withLock { $0 = result }
            started.broadcast()
        }
        let connection = try PostgresConnection(conninfo: started.wait { $0 }!.get())
        let session = try connection.query("SELECT pg_backend_pid()::int8").int64(0, 0)
        for pid in [try #require(rig.postmaster), Int32(try #require(session))] {
            #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(pid)) == expected)
        }
        try cluster.stop()
    }

    @Test func aDurableServerHasItsSettings() throws {
        let rig = try ClusterRig()
        var options = EmbeddedOptions()
        options.watchdogProgram = EmbeddedOptions.forTests.watchdogProgram
        let cluster = EmbeddedCluster(dataDirectory: rig.directory, options: options)
        let connection = try PostgresConnection(conninfo: cluster.start())
        for (name, value) in [
            ("listen_addresses", ""), ("fsync", "on"), ("synchronous_commit", "on"),
            ("full_page_writes", "on"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "30min"),
            ("wal_compression", "lz4"), ("max_connections", "50"), ("autovacuum", "on"),
            ("jit", "off"), ("TimeZone", "UTC"), ("server_encoding", "UTF8"),
            ("lc_collate", "C.UTF-8"), ("logging_collector", "on"), ("is_superuser", "on"),
        ] {
            #expect(try connection.query("SHOW \(name)").string(0, 0) == value, "\(name)")
        }
        let names = try connection.query("SELECT current_user::text, current_database()::text")
        #expect(names.string(0, 0) == "tapline")
        #expect(names.string(0, 1) == "tapline")
        try cluster.stop()
    }

    @Test func aKilledServerIsStartedAgainWithWhatWasCommitted() throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        let connection = try PostgresConnection(conninfo: cluster.start())
        try connection.execute("CREATE TABLE t AS SELECT 1::int8 AS n; CHECKPOINT")
        let pid = try #require(rig.postmaster)
        kill(pid, SIGKILL)
        let again = try PostgresConnection(conninfo: cluster.start())
        #expect(rig.postmaster != pid)
        #expect(try again.query("SELECT n FROM t").int64(0, 0) == 1)
        #expect(sqlstate { try connection.execute("SELECT 1") } != nil)
        try cluster.stop()
    }

    @Test func aSessionThatOutlivesAKilledServerIsNotInTheWay() throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        let conninfo = try cluster.start()
        let observer = try PostgresConnection(conninfo: conninfo)
        let thread = Thread.start(name: "busy") {
            let session = try? PostgresConnection(conninfo: conninfo, applicationName: "busy")
            // It computes, so it does not see that the postmaster is gone.
            _ = try? session?.query("SELECT max(n) FROM generate_series(1, 100000000000) AS n")
        }
        try rig.eventually("the session is busy") {
            let sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'busy' "
            return try observer.query(sql + "AND query LIKE '%generate_series%'").rows == 1
        }
        kill(try #require(rig.postmaster), SIGKILL)
        #expect(try PostgresConnection(conninfo: cluster.start()).isAlive)
        thread.join()
        try cluster.stop()
    }

    @Test func aSecondProcessAdoptsARunningServer() throws {
        let rig = try ClusterRig()
        var first: EmbeddedCluster? = try rig.makeCluster()
        let conninfo = try first?.start()
        let pid = rig.postmaster
        first = nil  // As a killed daemon: its locks are gone, the server runs on.
        let second = try rig.makeCluster()
        #expect(try second.start() == conninfo)
        #expect(rig.postmaster == pid)
        try second.stop()
        #expect(try !rig.isServerAlive)
    }

    @Test func filesLeftByACrashAreNotInTheWayThoughTheirNumberLivesAgain() throws {
        let rig = try ClusterRig()
        let first = try rig.makeCluster()
        _ = try first.start()
        let pid = try #require(rig.postmaster)
        let path = rig.directory + "/postgres/data/postmaster.pid"
        let left = try File.contents(of: path)
        try first.stop()
        // Process 1 lives and is no server; the same in the lock file of the socket.
        let forged = "1" + String(decoding: left, as: UTF8.self).dropFirst("\(pid)".count)
        for name in [path, rig.directory + "/run/.s.PGSQL.5432.lock"] {
            try File(name, .replace).write(Array(forged.utf8).span, at: 0)
        }
        try File(rig.directory + "/run/.s.PGSQL.5432", .replace).sync()
        let second = try rig.makeCluster()
        let conninfo = try second.start()
        #expect(try PostgresConnection(conninfo: conninfo).isAlive)
        try second.stop()
    }

    @Test func halfAnInitializationIsBegunAnew() throws {
        let rig = try ClusterRig()
        let first = try rig.makeCluster()
        _ = try first.start()
        try first.stop()
        let data = rig.directory + "/postgres/data"
        #expect(unsafe rename(data, data + ".init") == 0)
        let cluster = try rig.makeCluster()
        _ = try cluster.start()
        #expect(cluster.isHealthy)
        #expect(!Directory.isDirectory(rig.directory + "/postgres/data.init"))
        try cluster.stop()
    }

    @Test func aLongPathGetsAShortDirectoryForItsSocket() throws {
        let part = String(repeating: "long", count: 15)
        let rig = try ClusterRig(subdirectory: "\(part)/\(part)/it's, \(part)")
        let cluster = try rig.makeCluster()
        let conninfo = try cluster.start()
        let record = rig.directory + "/postgres.socket-dir"
        let short = String(decoding: try File.contents(of: record), as: UTF8.self)
        #expect(conninfo.contains("host='\(short)'") && short.hasPrefix("/tmp/tapline-"))
        #expect(try PostgresConnection(conninfo: conninfo).isAlive)
        try cluster.stop()
        #expect(!Directory.isDirectory(short))
    }

    @Test func aDirectoryThatOnlyRootMayEnterWorks() throws {
        let rig = try ClusterRig(subdirectory: "data", isPrivate: true)
        let first = try rig.makeCluster()
        let connection = try PostgresConnection(conninfo: first.start())
        try connection.execute("CREATE TABLE t (); CHECKPOINT")
        try first.stop()
        let second = try rig.makeCluster()
        #expect(try PostgresConnection(conninfo: second.start()).isAlive)
        try second.stop()
        #expect(try !rig.isServerAlive)
    }

    @Test func aServerThatLostItsSocketIsStartedAnew() throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        let conninfo = try cluster.start()
        unsafe unlink(rig.directory + "/run/.s.PGSQL.5432")
        #expect(!cluster.isHealthy)
        #expect(try cluster.start() == conninfo)
        #expect(cluster.isHealthy)
        try cluster.stop()
    }

    /// Whoever trusts its file does not look, and whoever looks then finds that it is not there.
    @Test func aServerIsBelievedThatSaysThatItIsReady() throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        let conninfo = try cluster.start()
        let pid = rig.postmaster
        let command = try rig.makeCluster()
        unsafe unlink(rig.directory + "/run/.s.PGSQL.5432")
        #expect(try command.attach(isTrusting: true) == conninfo)
        #expect(rig.postmaster == pid && !command.isHealthy)
        #expect(try command.attach() == conninfo)
        #expect(rig.postmaster != pid && command.isHealthy)
        try command.stop()
        try cluster.stop()
    }

    @Test func theServerIsCutOffFromWhoStartedIt() throws {
        let rig = try ClusterRig()
        let mark = rig.root + "/open"
        let descriptor = unsafe open(mark, O_RDWR | O_CREAT, 0o600)  // Inherited by anyone.
        defer { close(descriptor) }
        let cluster = try rig.makeCluster()
        _ = try cluster.start()
        let pid = try #require(rig.postmaster)
        #expect(getsid(pid) == pid)
        for name in try Directory.list("/proc/\(pid)/fd") {
            let target = unsafe realpath("/proc/\(pid)/fd/\(name)", nil)
            let path = unsafe target.map { unsafe String(cString: $0) }
            #expect(path != mark)
            unsafe free(target)
        }
        if geteuid() == 0 {
            #expect(try ClusterRig.status(pid, "Uid").hasPrefix(" \(try Self.postgresUser()) "))
        }
        try cluster.stop()
    }

    @Test func stoppingEndsAStartThatIsUnderWay() throws {
        let rig = try ClusterRig()
        let cluster = try rig.makeCluster()
        let thread = Thread.start(name: "start") { _ = try? cluster.start() }
        try rig.eventually("the start begins") {
            unsafe access(rig.directory + "/postgres.users", F_OK) == 0
        }
        try cluster.stop()
        thread.join()
        #expect(try !rig.isServerAlive)
    }

    @Test func settingsThatTheServerRefusesAreTold() throws {
        let rig = try ClusterRig()
        var options = EmbeddedOptions.forTests
        options.settings.append(("max_connections", "many"))
        let cluster = EmbeddedCluster(dataDirectory: rig.directory, options: options)
        do throws(PostgresError) {
            _ = try cluster.start()
            Issue.record("started")
        } catch {
            #expect("\(error)".contains("could not start the embedded database"))
            #expect("\(error)".contains("postgresql.conf"))
        }
        try cluster.stop()
    }

    private static func postgresUser() throws -> UInt32 {
        let text = String(decoding: try File.contents(of: "/etc/passwd"), as: UTF8.self)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("postgres:") })
        return try #require(UInt32(line.split(separator: ":")[2]))
    }
}
