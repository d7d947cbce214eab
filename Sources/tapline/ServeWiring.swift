import Daemon
import Options
import Platform

/// Runs the daemon until SIGTERM; `reload` reads the settings again for SIGHUP.
func serve(
    _ settings: ServeSettings, reload: @escaping () throws(OptionsError) -> ServeSettings
) -> Int32 {
    apply(settings.logLevel)
    do throws(DaemonError) {
        return try Daemon.run(daemonSettings(settings)) {
            do throws(OptionsError) {
                let new = try reload()
                Failpoint.reach("settings.reload")
                apply(new.logLevel)
                Log.info("settings read again; all but log.level take effect at the next start")
            } catch {
                Log.error(
                    "settings not read, the old ones stay: \(error.message)", hint: error.hint)
            }
        }
    } catch {
        complain("tapline serve: \(error)", hint: error.hint)
        return 1
    }
}

private func apply(_ level: LogLevel) {
    if let level = Log.Level(word: level.rawValue) { Log.level = level }
}

/// The settings of the command line as the modules take them.
func daemonSettings(_ settings: ServeSettings) -> DaemonSettings {
    var daemon = DaemonSettings(
        dataDirectory: settings.dataDirectory, version: taplineVersion)
    daemon.database = settings.database
    daemon.environment = surroundings.variables
    daemon.http.listen = "\(settings.listen)"
    daemon.http.bodyBytesMax = settings.http.bodyBytesMax
    daemon.http.headerBytesMax = settings.http.headerBytesMax
    daemon.http.headerTimeoutMilliseconds = settings.http.headerTimeoutMilliseconds
    daemon.http.bodyTimeoutMilliseconds = settings.http.bodyTimeoutMilliseconds
    daemon.http.idleTimeoutMilliseconds = settings.http.idleTimeoutMilliseconds
    daemon.http.connectionsMax = settings.http.connectionsMax
    daemon.http.connectionsPerAddressMax = settings.http.connectionsPerAddressMax
    daemon.http.addressConnectionsPerSecondMax = settings.http.addressConnectionsPerSecondMax
    daemon.service.bodyBytesMax = settings.http.bodyBytesMax
    daemon.service.linesMax = settings.http.bodyLinesMax
    daemon.service.lineBytesMax = settings.http.lineBytesMax
    daemon.service.keyRequestsPerSecondMax = settings.http.keyRequestsPerSecondMax
    daemon.service.keyEventsPerSecondMax = settings.http.keyEventsPerSecondMax
    daemon.service.keyBurstMilliseconds = settings.http.keyBurstMilliseconds
    daemon.service.aliasRequestsPerSecondMax = settings.http.aliasRequestsPerSecondMax
    daemon.service.sapStatusPath = settings.http.sapStatusPath
    daemon.service.sapRegistrationPath = settings.http.sapRegistrationPath
    daemon.service.inFlightBytesMax = settings.http.inFlightBytesMax
    daemon.drainSeconds = (settings.http.drainTimeoutMilliseconds + 999) / 1000
    daemon.spool.segmentBytesMax = settings.spool.segmentBytesMax
    daemon.spool.bytesMax = settings.spool.bytesMax
    daemon.spool.keepSeconds = settings.spool.keepMilliseconds / 1000
    daemon.spool.keepBytes = settings.spool.keepBytes
    daemon.load.batchRowsMax = settings.load.batchRowsMax
    daemon.load.batchAgeMilliseconds = settings.load.batchAgeMilliseconds
    daemon.load.segmentRowsMax = settings.load.segmentRowsMax
    daemon.load.identityFilesBytesMax = settings.load.identityFilesBytesMax
    daemon.load.lockTimeoutMilliseconds = settings.load.lockTimeoutMilliseconds
    daemon.load.statementTimeoutMilliseconds = settings.load.statementTimeoutMilliseconds
    daemon.reportTimeoutMilliseconds = settings.report.timeoutMilliseconds
    return daemon
}
