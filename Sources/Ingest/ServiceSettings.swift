/// The limits that a request for ingest is held to. Every refusal names those it is about.
package struct ServiceSettings: Sendable {
    /// A body, as it is sent and as it inflates. Give the HTTP server the same.
    package var bodyBytesMax = 10 * 1024 * 1024
    /// Lines of a body that are not blank, or elements of an array.
    package var linesMax = 10_000
    /// One line.
    package var lineBytesMax = 64 * 1024
    /// Inflated bytes of all bodies that are not answered yet, but for those without a key.
    package var inFlightBytesMax = 64 * 1024 * 1024
    /// What large bodies may have of that, so that there is always room for small ones.
    var inFlightLargeBytesMax: Int { max(inFlightBytesMax / 4 * 3, bodyBytesMax) }
    /// Threads that read large bodies.
    package var largeBodyThreads = 1
    /// The same of bodies without a key. They are read before it is known whether anybody may send
    /// them, so what they hold must not be missing to those who have a key.
    var inFlightWithoutKeyBytesMax: Int { inFlightBytesMax / 16 }
    /// Requests a second of one key, then 429; 0 for no limit.
    package var keyRequestsPerSecondMax = 0
    /// Events a second of one key, then 429; 0 for no limit.
    package var keyEventsPerSecondMax = 0
    /// The time whose share of both a key may save up.
    package var keyBurstMilliseconds = 1_000
    /// Requests a second of one vendor's app id that come without a key, then 429; 0 for no limit.
    package var aliasRequestsPerSecondMax = 1_000
    /// Where the notification statuses of SAP Mobile Services are taken.
    package var sapStatusPath = "/sap/notification-status"
    /// Where the registrations of its devices are taken.
    package var sapRegistrationPath = "/sap/registrations"
    /// Rejected lines that an answer lists.
    package var errorsMax = 100
    /// How long an answer waits for the database under `?ack=stored`.
    package var storedTimeoutMilliseconds = 10_000

    /// The defaults.
    package init() {}
}
