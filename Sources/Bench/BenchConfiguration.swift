/// How a run is made.
package struct BenchConfiguration: Sendable {
    /// The daemons; bodies go to them in turn, and a body that failed goes to the next one.
    package var urls = ["http://127.0.0.1:8080"]
    /// The ingest key.
    package var key: String?
    /// Bodies in flight at the same time.
    package var connections = 4
    /// New events a second at most; nil for as many as go.
    package var rate: Int?
    /// Of a hundred acknowledged bodies so many are sent again.
    package var resendPercent = 0
    /// Further clients that send bodies again and again and ignore `Retry-After`.
    package var storm = 0
    /// A body is given up after failing for so long.
    package var retrySeconds = 600.0
    /// Where acknowledgements are logged; nil for nowhere.
    package var log: String?
    /// What the server sees as `User-Agent`.
    package var userAgent = "tapline-bench"

    /// Makes the defaults.
    package init() {}
}
