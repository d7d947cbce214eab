import Foundation
import Glibc
import Options
import Testing

@Suite struct SettingsTests {
    static func resolve(
        flags: String = "", variables: [String: String] = [:], file: String? = nil,
        isRoot: Bool = true
    ) throws -> ResolvedSettings {
        var words = ["serve"] + flags.split(separator: " ").map(String.init)
        let path = NSTemporaryDirectory() + "/tapline-\(UUID().uuidString).conf"
        defer { _ = unsafe unlink(path) }
        if let file {
            try Data(file.utf8).write(to: URL(fileURLWithPath: path))
            words += ["--config", path]
        }
        guard case .run(let parsed) = try parse(words, root: .tapline) else {
            throw CancellationError()
        }
        do throws(OptionsError) {
            return try resolveSettings(
                flags: parsed,
                surroundings: Surroundings(variables: variables, isRoot: isRoot))
        } catch {
            throw Complaint(text: error.message.replacingOccurrences(of: path, with: "FILE"))
        }
    }

    struct Complaint: Error { let text: String }

    @Test func flagsWinOverVariablesOverTheFileOverDefaults() throws {
        let file = "listen = 127.0.0.1:1\nspool.keep = 1h\nload.batch_rows_max = 7\n"
        let variables = ["TAPLINE_LISTEN": "127.0.0.1:2", "TAPLINE_SPOOL_KEEP": "2h"]
        let resolved = try Self.resolve(
            flags: "--listen 127.0.0.1:3", variables: variables, file: file)
        #expect(resolved.settings.listen.port == 3)
        #expect(resolved.settings.spool.keepMilliseconds == 7_200_000)
        #expect(resolved.settings.load.batchRowsMax == 7)
        #expect(resolved.settings.http == HTTPSettings())
        #expect(resolved.provenance["listen"] == .flag("listen"))
        #expect(
            resolved.provenance["spool.keep"] == .environment(variable: "TAPLINE_SPOOL_KEEP"))
        #expect(resolved.provenance["load.batch_rows_max"]?.description.hasSuffix(":3") == true)
        #expect(resolved.provenance["spool.bytes_max"] == nil)
    }

    @Test func setReachesEveryKey() throws {
        let resolved = try Self.resolve(
            flags: "--set http.body_bytes_max=1MiB --set log.level=debug")
        #expect(resolved.settings.http.bodyBytesMax == 1 << 20)
        #expect(resolved.settings.logLevel == .debug)
    }

    @Test func theDataDirectoryDependsOnTheUser() throws {
        #expect(try Self.resolve().settings.dataDirectory == "/var/lib/tapline")
        let user = try Self.resolve(variables: ["HOME": "/home/u"], isRoot: false)
        #expect(user.settings.dataDirectory == "/home/u/.local/share/tapline")
        let named = try Self.resolve(variables: ["TAPLINE_DATA_DIR": "/d"], isRoot: false)
        #expect(named.settings.dataDirectory == "/d")
    }

    @Test func aDatabaseOfLibpqsVariablesStandsAboveTheFile() throws {
        let file = "database = host=file\n"
        #expect(try Self.resolve(file: file).settings.database == "host=file")
        let url = try Self.resolve(variables: ["DATABASE_URL": "postgres://h/d"], file: file)
        #expect(url.settings.database == "postgres://h/d")
        let host = try Self.resolve(variables: ["PGHOST": "h"], file: file)
        #expect(host.settings.database == nil)
        let own = try Self.resolve(
            variables: ["PGHOST": "h", "TAPLINE_DATABASE": "host=own"], file: file)
        #expect(own.settings.database == "host=own")
    }

    @Test(arguments: [
        (
            "spool.byte_max = 1",
            "FILE:1: unknown setting \"spool.byte_max\" (did you mean spool.bytes_max?)"
        ),
        (
            "# x\n\nspool.bytes_max = lots",
            "FILE:3: spool.bytes_max is \"lots\", expected a size such as 64MiB"
        ),
        ("load.batch_rows_max = 0", "FILE:1: load.batch_rows_max is \"0\", expected 1 to 1000000"),
        (
            "spool.segment_bytes_max = 1KiB",
            "FILE:1: spool.segment_bytes_max is \"1KiB\", expected 64KiB to 4GiB"
        ),
        (
            "listen = 8080",
            "FILE:1: listen is \"8080\", expected ADDR:PORT, for example 127.0.0.1:8080"
        ),
        ("log.level = loud", "FILE:1: log.level is \"loud\", expected error, warn, info or debug"),
        ("listen", "FILE:1: \"listen\" is not key = value"),
        ("spool.keep = 1h\r\nspool.keep = 2h", "FILE:2: spool.keep is set twice, first at FILE:1"),
        ("database = \"a", "FILE:1: database has a value with unbalanced quotes"),
    ]) func aWrongFileIsNamedByItsLine(file: String, message: String) {
        let complaint = #expect(throws: Complaint.self) { try Self.resolve(file: file) }
        #expect(complaint?.text == message)
    }

    @Test(arguments: [
        ("--set frob=1", "--set: unknown setting \"frob\""),
        ("--set frob", "--set: \"frob\" is not KEY=VALUE"),
        ("--listen x", "--listen: listen is \"x\", expected ADDR:PORT, for example 127.0.0.1:8080"),
        ("--config /no/such", "/no/such: could not read configuration: no such file or directory"),
    ]) func aWrongFlagIsNamed(flags: String, message: String) {
        let complaint = #expect(throws: Complaint.self) { try Self.resolve(flags: flags) }
        #expect(complaint?.text == message)
    }

    @Test(arguments: [
        "/", "//x", "/v1/events", "/v1/reports/campaigns", "/v1", "/healthz", "/readyz", "/metrics",
        "/mobile_apps/a/devices/d/events", "/api/push/event", "/api/v1/register-device",
        "/json/1.3/pushStat",
    ]) func aPathThatIsServedAlreadyIsRefused(path: String) {
        let complaint = #expect(throws: Complaint.self) {
            try Self.resolve(file: "http.sap_status_path = \(path)")
        }
        #expect(
            complaint?.text
                == "FILE:1: http.sap_status_path is \"\(path)\", expected a path that is not "
                + "served already: neither / nor below /v1, /healthz, /readyz, /metrics, "
                + "/mobile_apps, /api or /json")
    }

    @Test func anyOtherPathIsTaken() throws {
        for path in ["/sap", "/v12/x", "/my/api", "/jsonp/1.3/pushStat"] {
            let resolved = try Self.resolve(file: "http.sap_status_path = \(path)")
            #expect(resolved.settings.http.sapStatusPath == path)
        }
    }

    @Test func aWrongVariableIsNamed() {
        let complaint = #expect(throws: Complaint.self) {
            try Self.resolve(variables: ["TAPLINE_SPOOL_KEEP": "1"])
        }
        #expect(complaint?.text.hasPrefix("TAPLINE_SPOOL_KEEP: spool.keep is \"1\"") == true)
    }

    @Test func whatIsPrintedReadsTheSame() throws {
        let flags = "--set spool.keep=36h --set http.line_bytes_max=12345"
        let first = try Self.resolve(
            flags: flags, variables: ["TAPLINE_DATABASE": "host=a dbname='b #c'"])
        let second = try Self.resolve(file: first.printed)
        #expect(second.settings == first.settings)
    }

    @Test(arguments: [
        ("host=h password=s3cret user=u", "host=h password=*** user=u"),
        ("password = 's3 cret\\'s' host=h", "password=*** host=h"),
        ("postgres://u:s3cret@h:5432/d", "postgres://u:***@h:5432/d"),
        ("postgresql://h/d?password=s3cret&user=u", "postgresql://h/d?password=***&user=u"),
        ("host=h", "host=h"), ("postgres://u@h/d", "postgres://u@h/d"),
    ]) func noPasswordIsPrinted(conninfo: String, shown: String) throws {
        let resolved = try Self.resolve(variables: ["TAPLINE_DATABASE": conninfo])
        #expect(!resolved.printed.contains("s3"))
        #expect(resolved.printed.contains(shown))
    }

    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), (":9", "0.0.0.0", 9),
        ("localhost:65535", "localhost", 65535),
    ]) func anAddressIsRead(text: String, host: String, port: Int) {
        #expect(ListenAddress(text) == ListenAddress(host: host, port: UInt16(port)))
    }

    @Test(arguments: ["", "80", "h:", "h:65536", "h:-1", "::1:80", "[h]:80", "a b:1", "http://h:1"])
    func aWrongAddressIsRefused(text: String) {
        #expect(ListenAddress(text) == nil)
    }

    @Test func everyKeyHasItsOwnVariableAndAcceptsItsDefault() throws {
        #expect(Set(SettingSpec.all.map(\.variable)).count == SettingSpec.all.count)
        var settings = ServeSettings()
        settings.dataDirectory = "/d"
        let before = settings
        for spec in SettingSpec.all {
            guard let text = spec.text(of: settings) else { continue }
            #expect(spec.store(text, in: &settings) == nil, "\(spec.key)")
        }
        #expect(settings == before)
    }
}
