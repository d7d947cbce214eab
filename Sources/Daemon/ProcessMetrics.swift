import Glibc
import Metrics
import Platform

/// The metrics of a process that Prometheus' client libraries agree on, read from /proc.
/// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics)
enum ProcessMetrics {
    static func register(in registry: Registry, version: String) {
        registry.gauge("tapline_build_info", "1, with the version", ["version": version]) { 1 }
        registry.gauge("process_resident_memory_bytes", "Resident memory size in bytes") {
            residentBytes
        }
        registry.counter("process_cpu_seconds_total", "User and system CPU time in seconds") {
            var usage = rusage()
            unsafe getrusage(0, &usage)  // RUSAGE_SELF
            let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
            let micros = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
            return Double(seconds) + Double(micros) / 1_000_000
        }
        registry.gauge("process_open_fds", "Number of open file descriptors") {
            Double(openFiles)
        }
        registry.gauge("tapline_threads", "Number of threads of the process") {
            Double((try? Directory.list("/proc/self/task").count) ?? 0)
        }
        let started = Double(Clock.now()) / 1_000_000
        registry.gauge(
            "process_start_time_seconds", "Start time since the epoch in seconds"
        ) { started }
    }

    /// What the kernel gives as the size of their directory since 6.2. An older one gives 0, and they are
    /// listed: that takes milliseconds where there are thousands.
    private static var openFiles: Int {
        let path = "/proc/self/fd"
        var info = stat()
        if unsafe stat(path, &info) == 0, info.st_size > 0 { return Int(info.st_size) }
        return (try? Directory.list(path).count) ?? 0
    }

    /// Resident memory from /proc/self/statm, whose second number is pages.
    private static var residentBytes: Double {
        // Files of /proc have no size, so a fixed count is read.
        guard let file = try? File("/proc/self/statm", .read),
            let bytes = try? file.read(count: 256, at: 0)
        else { return 0 }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard words.count > 1, let pages = Int(words[1]) else { return 0 }
        return Double(pages * sysconf(Int32(_SC_PAGESIZE)))
    }
}
