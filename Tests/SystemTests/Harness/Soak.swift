import Foundation
import Glibc

/// Kills at random moments of a load: the same ones for one seed.
struct Soak {
    enum Victim { case daemon, postgres }

    struct Kill {
        let victim: Victim
        /// It waits for so many bodies to be acknowledged,
        let acknowledgedBodies: Int
        /// and then so long.
        let pauseMicroseconds: UInt32
    }

    let daemonKills: Int
    let postgresKills: Int
    let events: Int
    let seed: UInt64
    /// How long the load lasts.
    let seconds: Int

    /// What the environment asks for (`make soak`), else what the suite has time for.
    static let asked: Soak = {
        let environment = ProcessInfo.processInfo.environment
        func number(_ name: String, _ standard: Int) -> Int {
            environment[name].flatMap { Int($0) } ?? standard
        }
        return Soak(
            daemonKills: number("SOAK_KILLS", 80),
            postgresKills: number("SOAK_POSTGRES_KILLS", 20),
            events: number("SOAK_EVENTS", 200_000), seed: UInt64(number("SOAK_SEED", 50)),
            seconds: number("SOAK_SECONDS", 120))
    }()

    /// Events a second: the load must not be over before its time, however fast the machine is. A second more,
    /// as the first body goes at once, and the rate may catch up a tenth of one.
    var rate: Int { max(events / (seconds + 1), 1) }

    /// The kills in their order, spread over the load.
    ///
    /// One in five follows upon the one before without waiting for the load to go on, so that it meets
    /// a daemon or a database that is starting.
    var kills: [Kill] {
        var random = Random(seed: seed)
        let count = daemonKills + postgresKills
        // The load goes on while the last ones are dealt with.
        let bodies = events / 100 * 9 / 10
        let moments = (0..<count).map { _ in Int.random(in: 0..<bodies, using: &random) }.sorted()
        let victims = (0..<count).map { $0 < daemonKills ? Victim.daemon : .postgres }
        var last = 0
        return zip(victims.shuffled(using: &random), moments).enumerated().map { index, kill in
            if index % 5 != 4 { last = kill.1 }
            return Kill(
                victim: kill.0, acknowledgedBodies: last,
                pauseMicroseconds: UInt32.random(in: 0..<250_000, using: &random))
        }
    }
}

extension Daemon {
    /// `kill -9` of the embedded postmaster, once there is one.
    func killPostmaster() throws {
        try until("a postmaster runs\n\(log.suffix(2000))", seconds: 60) {
            let pid = try postmaster()
            // A killed one leaves its file, and its number may be another's by now.
            let name = try String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8)
            guard name.hasPrefix("postgres") else { return nil as Bool? }
            _ = Glibc.kill(pid, SIGKILL)
            return true
        }
    }
}
