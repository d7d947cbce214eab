import Glibc
import Platform

/// An installed PostgreSQL server.
struct ServerPrograms {
    /// The directory of `postgres` and `initdb`.
    let directory: String
    /// The major version.
    let version: Int

    /// For `initdb` and `postgres`: nothing of the caller's locale or `PG…` variables.
    static var environment: [String] {
        var result = ["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"]
        if let path = variable("LD_LIBRARY_PATH") { result.append("LD_LIBRARY_PATH=" + path) }
        return result
    }

    /// Finds the server of a version, or the newest.
    ///
    /// - Parameter version: Of the cluster that is to be run; nil takes any.
    static func find(version: Int?) throws(ClusterFault) -> ServerPrograms {
        let found = directories().compactMap { directory -> ServerPrograms? in
            let program = directory + "/postgres"
            guard unsafe access(program, X_OK) == 0,
                unsafe access(directory + "/initdb", X_OK) == 0,
                let answer = try? Spawn.run([program, "--version"], environment: environment),
                let number = answer.output.split(separator: " ").first(where: {
                    $0.first?.isNumber == true
                }), let major = Int(number.prefix { $0.isNumber })
            else { return nil }
            return ServerPrograms(directory: directory, version: major)
        }
        let fitting = found.filter { version == nil || $0.version == version }
        guard let best = fitting.max(by: { $0.version < $1.version }) else {
            throw .noPrograms(version: version, found: found.map(\.version))
        }
        return best
    }

    /// Where servers are installed; `TAPLINE_POSTGRES_BIN` alone when it is set.
    private static func directories() -> [String] {
        if let directory = variable("TAPLINE_POSTGRES_BIN") { return [directory] }
        var result: [String] = []
        func add(_ parent: String, _ prefix: String, _ suffix: String) {
            for name in (try? Directory.list(parent)) ?? [] where name.hasPrefix(prefix) {
                result.append(parent + "/" + name + suffix)
            }
        }
        add("/usr/lib/postgresql", "", "/bin")
        add("/usr", "pgsql-", "/bin")
        add("/usr/libexec", "postgresql", "")
        result.append("/usr/local/pgsql/bin")
        for directory in (variable("PATH") ?? "/usr/local/bin:/usr/bin").split(separator: ":")
        where !result.contains(String(directory)) {
            result.append(String(directory))
        }
        return result
    }

    private static func variable(_ name: String) -> String? {
        // SAFETY: copied at once; nothing in this process changes its environment.
        let value = unsafe getenv(name).map { unsafe String(cString: $0) }
        return value?.isEmpty == false ? value : nil
    }
}
