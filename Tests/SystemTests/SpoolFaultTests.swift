import Foundation
import Testing

extension SystemTests {
    /// The spool is full, its disk is full, or it is not the one that it was.
    @Suite struct SpoolFaultTests {
        /// A body of about 60 KiB of events that compress badly.
        static func bulk(_ name: String) -> (text: String, count: Int) {
            var random = Random(seed: UInt64(name.utf8.reduce(0) { $0 * 31 + Int($1) }))
            let lines = (0..<50).map { index in
                let noise = (0..<60).map { _ in String(random.next(), radix: 36) }.joined()
                return App.click("\(name)-\(index)", #","properties":{"noise":"\#(noise)"}"#)
            }
            return (lines.joined(separator: "\n"), lines.count)
        }

        /// Posts bodies until one is refused.
        ///
        /// - Returns: How many events were acknowledged before, and the refusal.
        static func fill(_ app: App, _ name: String) throws -> (count: Int, refusal: Answer) {
            var acknowledged = 0
            for index in 0..<500 {
                let (text, count) = bulk("\(name)\(index)")
                let answer = try app.post(text)
                guard answer.status == 200 else { return (acknowledged, answer) }
                acknowledged += count
            }
            throw Failure("never full")
        }

        @Test func aSpoolAtItsLimitRefusesUntilItIsLoaded() throws {
            let cluster = try Cluster()
            let settings = ["spool.bytes_max": "1MiB", "spool.segment_bytes_max": "256KiB"]
            let daemon = try Daemon(database: cluster.conninfo(), settings: settings).start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            let (count, refusal) = try Self.fill(app, "full")
            try StatusTests.expectRefusal(refusal, 503)
            #expect(count > 0)
            #expect(try daemon.get("/metrics").status == 200)
            #expect(try daemon.get("/healthz").status == 200)
            #expect(try daemon.get("/readyz").status == 503)
            try cluster.start()
            #expect(try app.storedCount() == count)
            #expect(try app.post(App.click("after")).status == 200)
            #expect(try app.storedCount() == count + 1)
            #expect(try daemon.check().exit == .code(0))
        }

        static func expectDiskFull(_ answer: Answer) throws {
            try StatusTests.expectRefusal(answer, 507)
            #expect(try answer.json["error"]["code"].text == "disk_full", "\(answer.text)")
        }

        /// One line of the log is an error, it has these words, and the hint is below it.
        static func expectSaidOnce(_ daemon: Daemon, _ words: String, hint: String) throws {
            let lines = daemon.log.split(separator: "\n")
            let places = lines.indices.filter {
                lines[$0].contains(" ERROR ") || lines[$0].contains(words)
            }
            #expect(places.count == 1, "\(daemon.log)")
            let place = try #require(places.first)
            #expect(lines[place].contains(" ERROR ") && lines[place].contains(words))
            let next = lines.indices.contains(place + 1) ? lines[place + 1] : ""
            #expect(next.hasPrefix("hint: ") && next.contains(hint), "\(daemon.log)")
        }

        /// Whether this machine lets us mount a small file system.
        static let canMount: Bool = {
            let directory = TemporaryDirectory()
            guard (try? mount(directory.path, megabytes: 1)) != nil else { return false }
            _ = try? Tapline.tool(["umount", directory.path])
            return true
        }()

        static func mount(_ path: String, megabytes: Int) throws {
            let options = ["-t", "tmpfs", "-o", "size=\(megabytes)m"]
            try Tapline.tool(["mount"] + options + ["tapline-test", path])
        }

        @Test(.enabled(if: canMount)) func aFullDiskIsNeverAcknowledgedAndPasses() throws {
            let disk = TemporaryDirectory()
            try Self.mount(disk.path, megabytes: 4)
            defer { _ = try? Tapline.tool(["umount", "-l", disk.path]) }
            let cluster = try Cluster()
            let directory = disk.path + "/d"
            let settings = ["spool.segment_bytes_max": "256KiB"]
            let daemon = try Daemon(
                directory: directory, database: cluster.conninfo(), settings: settings)
            try daemon.start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            let ballast = try disk.file("ballast", [UInt8](repeating: 1, count: 2 << 20))
            let (count, refusal) = try Self.fill(app, "disk")
            try Self.expectDiskFull(refusal)
            #expect(count > 0)
            for index in 0..<20 { try Self.expectDiskFull(app.post(Self.bulk("no\(index)").text)) }
            #expect(try daemon.get("/readyz").status == 503)
            #expect(try daemon.metric("tapline_spool_failures_total") > 0)
            #expect(try daemon.metric("tapline_http_responses_total{status=\"507\"}") == 21)
            try Self.expectSaidOnce(daemon, "no space left on device", hint: "Free space")
            // A kill and a start on the full disk change nothing.
            try daemon.kill()
            try daemon.spawn()
            try until("the daemon is alive") {
                try daemon.get("/healthz").status == 200 ? true : nil
            }
            try Self.expectDiskFull(app.post(Self.bulk("full").text))
            try Self.expectSaidOnce(daemon, "no space left on device", hint: "Free space")
            try FileManager.default.removeItem(atPath: ballast)
            try until("events are taken again") {
                try app.post(App.click("after")).status == 200 ? true : nil
            }
            try cluster.start()
            #expect(try app.storedCount() == count + 1)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        // MARK: A start that cannot be, and one that is large

        /// A daemon that does not start says why in one line and a hint, and changes nothing.
        static func expectRefusedStart(_ daemon: Daemon, _ words: String...) throws {
            try daemon.spawn()
            #expect(try daemon.process?.wait(seconds: 30) == .code(1))
            let complaints = daemon.log.split(separator: "\n").filter { !$0.hasPrefix("hint: ") }
            #expect(complaints.count == 1, "\(daemon.log)")
            for word in words + ["hint: "] { #expect(daemon.log.contains(word), "\(daemon.log)") }
        }

        @Test(.enabled(if: canMount)) func aReadOnlyDiskRefusesTheStartAndLosesNothing() throws {
            let disk = TemporaryDirectory()
            try Self.mount(disk.path, megabytes: 4)
            defer { _ = try? Tapline.tool(["umount", "-l", disk.path]) }
            let cluster = try Cluster()
            let daemon = try Daemon(directory: disk.path + "/d", database: cluster.conninfo())
            try daemon.start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            #expect(try app.post(App.click("kept")).status == 200)
            #expect(try daemon.stop() == .code(0))
            try Tapline.tool(["mount", "-o", "remount,ro", disk.path])
            try Self.expectRefusedStart(daemon, daemon.directory, "read-only file system")
            try Tapline.tool(["mount", "-o", "remount,rw", disk.path])
            try cluster.start()
            try daemon.start()
            try app.store([App.click("after")])
            #expect(try app.count() == 2)
            #expect(try daemon.stop() == .code(0))
        }

        /// A file system with an open file that is written to is not made read-only by the kernel for the
        /// asking. So a read-only view of the spool is put over it: what is open stays writable, nothing
        /// can be made or removed.
        @Test(.enabled(if: canMount)) func aSpoolThatBecomesReadOnlyUnderLoadAcknowledgesNothing()
            throws
        {
            let cluster = try Cluster()
            let daemon = try Daemon(
                database: cluster.conninfo(),
                settings: ["spool.segment_bytes_max": "64KiB", "load.batch_age_ms": "20"]
            ).start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 77)
            oracle.start(connections: 4)
            defer { oracle.abandon() }
            try oracle.waitForMore(1000)
            let spool = daemon.directory + "/spool"
            // Made elsewhere, where nobody writes to it meanwhile.
            let view = TemporaryDirectory()
            try Tapline.tool(["mount", "--bind", spool, view.path])
            defer { _ = try? Tapline.tool(["umount", "-l", view.path]) }
            try Tapline.tool(["mount", "-o", "remount,bind,ro", view.path])
            try Tapline.tool(["mount", "--bind", view.path, spool])
            var isOver = false
            defer { if !isOver { _ = try? Tapline.tool(["umount", "-l", spool]) } }
            try until("the spool fails") {
                try daemon.metric("tapline_spool_failures_total") > 0 ? true : nil
            }
            // The last ones from before it may be on their way.
            try oracle.waitUntilAllRetry()
            let acknowledged = oracle.acknowledgedCount
            for index in 0..<20 {
                try StatusTests.expectRefusal(try app.post(App.click("ro\(index)")), 503)
            }
            #expect(oracle.acknowledgedCount == acknowledged)
            #expect(try daemon.get("/readyz").status == 503)
            let lines = daemon.log.split(separator: "\n")
            let complaints = lines.filter { $0.contains("ERROR") }
            #expect(complaints.count == 1, "\(daemon.log)")
            #expect(complaints.first?.contains("read-only file system") == true)
            #expect(daemon.log.contains("Nothing of it is acknowledged"))
            try Tapline.tool(["umount", "-l", spool])
            isOver = true
            try oracle.waitForMore(1000)
            try oracle.stop()
            #expect(daemon.log.contains("spool can append again"))
            try daemon.waitUntilLoaded()
            try oracle.verify(try daemon.sql(), app: app.name)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        static func crc32c(_ bytes: Data) -> UInt32 {
            ~bytes.reduce(~0) { sum, byte in
                (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in
                    value >> 1 ^ (value & 1) * 0x82F6_3B78
                }
            }
        }

        @Test func aSpoolOfAnotherFormatRefusesTheStartAndLosesNothing() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            #expect(try app.post(App.click("kept")).status == 200)
            #expect(try daemon.stop() == .code(0))
            let segment = URL(fileURLWithPath: daemon.directory + "/spool/000000000001.seg")
            let old = try Data(contentsOf: segment)
            // The version follows the eight bytes of the magic; the header ends with its checksum.
            var new = old
            new[8] = 2
            let checksum = Self.crc32c(new.prefix(60))
            for index in 0..<4 {
                new[60 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * index))
            }
            #expect(old[60] == UInt8(truncatingIfNeeded: Self.crc32c(old.prefix(60))))
            try new.write(to: segment)
            try Self.expectRefusedStart(
                daemon, segment.path, "format is 2, limit is 1",
                "the version of Tapline that wrote it")
            #expect(try Data(contentsOf: segment) == new)
            try old.write(to: segment)
            try cluster.start()
            try daemon.start()
            try app.store([App.click("after")])
            #expect(try app.stored("message_uid") == [["after"], ["kept"]])
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aSegmentThatMayNotBeReadRefusesTheStartAndLosesNothing() throws {
            let home = TemporaryDirectory()
            let cluster = try Cluster()
            let settings = ["spool.segment_bytes_max": "64KiB"]
            let daemon = try Daemon(
                directory: home.path + "/d", database: cluster.conninfo(), settings: settings)
            if geteuid() == 0 {
                // Permissions mean nothing to root.
                daemon.binary = try home.file(
                    "as-postgres",
                    "#!/bin/sh\nexec setpriv --reuid=postgres --regid=postgres --clear-groups "
                        + "\(Tapline.binary) \"$@\"\n")
                try Tapline.tool(["chmod", "755", daemon.binary])
                try Tapline.tool(["chown", "postgres", home.path])
            }
            try daemon.start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            var count = 0
            for index in 0..<4 {
                let (text, lines) = Self.bulk("permissions\(index)")
                #expect(try app.post(text).status == 200)
                count += lines
            }
            #expect(try daemon.stop() == .code(0))
            let segment = daemon.directory + "/spool/000000000003.seg"
            try Tapline.tool(["chmod", "000", segment])
            try Self.expectRefusedStart(daemon, segment, "permission denied", "permissions")
            try Tapline.tool(["chmod", "640", segment])
            try cluster.start()
            try daemon.start()
            try app.store([App.click("after")])
            #expect(try app.count() == count + 1)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        /// As much as the machine of the tests bears; why it is the same for 20 GB is said in
        /// docs/reliability.md.
        @Test func aLargeBacklogStartsAtOnceInBoundedMemory() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            var random = Random(seed: 14)
            let noise = (0..<600).map { _ in String(random.next(), radix: 36) }.joined()
            let properties = #","properties":{"noise":"\#(noise)"}"#
            let connection = try daemon.connect()
            var count = 0
            while try daemon.metric("tapline_spool_unloaded_bytes") < 200e6 {
                for _ in 0..<10 {
                    let lines = (0..<100).map { App.click("b\(count + $0)", properties) }
                    try connection.send(
                        Request.events(lines.joined(separator: "\n"), key: app.key).bytes)
                    #expect(try connection.answer().status == 200)
                    count += lines.count
                }
            }
            try daemon.kill()
            // Without the database, and with it: what is spooled is never held in memory.
            try daemon.spawn()
            try daemon.waitUntilReady(seconds: 10)
            #expect(try app.post(App.click("fresh")).status == 200)
            #expect(daemon.process?.memory("VmHWM") ?? .max < 100 << 20)
            try cluster.start()
            try until("all is stored", seconds: 300, interval: 0.1) {
                try app.count() == count + 1 ? true : nil
            }
            let peak = daemon.process?.memory("VmHWM") ?? .max
            #expect(peak < 160 << 20, "\(peak >> 20) MiB for \(count) events")
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        // MARK: A checkpoint that is not of this spool

        @Test func aCopiedSpoolIsLoadedByOneDaemonOnlyAndLosesNothing() throws {
            let cluster = try Cluster()
            let first = try Daemon(database: cluster.conninfo()).start()
            let app = try App(first)
            try app.store([App.click("shared")])
            #expect(try first.stop() == .code(0))
            let second = try Daemon(database: cluster.conninfo())
            try Tapline.tool(["cp", "-a", first.directory, second.directory])
            try first.start()
            try app.store([App.click("first")])
            try second.start()
            #expect(try second.send(.events(App.click("second"), key: app.key)).status == 200)
            try until("the second daemon complains") {
                second.log.contains("ERROR") ? true : nil
            }
            #expect(try second.metric("tapline_events_spooled") >= 1)
            try app.store([App.click("first2")])
            #expect(try first.stop() == .code(0))
            // Now nobody else has the checkpoint; what it says is not of the second's spool.
            let stored = try until("the second daemon loads", seconds: 60) {
                let uids = try app.stored("message_uid").compactMap { $0[0] }
                return uids.count == 4 ? uids : nil
            }
            #expect(stored == ["first", "first2", "second", "shared"])
            try second.waitUntilLoaded()
            #expect(try second.check().exit == .code(0))
            try first.start()
            #expect(try first.send(.events(App.click("last"), key: app.key)).status == 200)
            try first.waitUntilLoaded()
            #expect(try app.count() == 5)
        }

        @Test func aSpoolBehindItsCheckpointIsLoadedFromItsOldestRecord() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store((0..<10).map { App.click("a\($0)") })
            #expect(try daemon.stop() == .code(0))
            let copy = TemporaryDirectory()
            try Tapline.tool(["cp", "-a", daemon.directory, copy.path + "/d"])
            try daemon.start()
            try app.store((0..<10).map { App.click("b\($0)") })
            #expect(try daemon.stop() == .code(0))
            // The machine is set back to its snapshot; the database is not.
            let old = try Daemon(directory: copy.path + "/d", database: cluster.conninfo()).start()
            for index in 0..<10 {
                let answer = try old.send(.events(App.click("c\(index)"), key: app.key))
                #expect(answer.status == 200)
            }
            try old.waitUntilLoaded()
            #expect(try old.sql().int("SELECT count(*) FROM tapline.event") == 30)
            #expect(old.log.contains("ERROR"), "it says that something is wrong")
            #expect(try old.stop() == .code(0))
        }

        @Test func aRestoredDatabaseSkipsNothingThatIsStillInTheSpool() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store((0..<10).map { App.click("a\($0)") })
            #expect(try daemon.stop() == .code(0))
            let admin = try SQL(cluster.conninfo("postgres"))
            try admin.rows("CREATE DATABASE backup TEMPLATE tapline")
            try daemon.start()
            try app.store((0..<10).map { App.click("b\($0)") })
            #expect(try daemon.stop() == .code(0))
            try admin.rows("DROP DATABASE tapline WITH (FORCE)")
            try admin.rows("ALTER DATABASE backup RENAME TO tapline")
            try daemon.start()
            try app.store((0..<10).map { App.click("c\($0)") })
            #expect(try app.storedCount() == 30)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }
    }
}
