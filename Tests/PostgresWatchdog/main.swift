import Glibc
import Postgres

// The watchdog of clusters in tests, as the product's own program runs it. And, for tests that kill
// a daemon, one: `daemon DIR` starts the cluster of DIR as `forTests` would with a watchdog of 1 s,
// with all signals blocked as a daemon has them, prints a line and waits to be killed.
let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == EmbeddedCluster.watchdogCommand {
    exit(EmbeddedCluster.watchdogMain(Array(arguments.dropFirst())))
}
guard arguments.count == 2, arguments[0] == "daemon" else { exit(2) }
var signals = sigset_t()
unsafe sigfillset(&signals)
unsafe pthread_sigmask(SIG_SETMASK, &signals, nil)
var options = EmbeddedOptions()
options.isThrowaway = true
options.watchdogSeconds = 1
options.settings = [("fsync", "off")]
let cluster = EmbeddedCluster(dataDirectory: arguments[1], options: options)
_ = try cluster.start()
unsafe write(1, "ready\n", 6)
while true { pause() }
