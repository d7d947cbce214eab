import HTTPServer
import Platform

extension IngestService {
    /// Says who was refused, so that a proxy in front is not taken for a storm for long.
    package func refused(_ connections: RefusedConnections) {
        let (what, setting) =
            switch connections.limit {
            case .all: ("\(connections.value) connections are open", "connections_max")
            case .address:
                (
                    "one address has \(connections.value) connections open",
                    "connections_per_address_max"
                )
            case .rate:
                (
                    "one address opens more than \(connections.value) connections a second",
                    "address_connections_per_second_max"
                )
            }
        Log.warn(
            "\(what), refusing more",
            hint: "Raise http.\(setting) if that is a proxy or a gateway; else stop the client.",
            ["address": "\(connections.address)", "refused": "\(connections.count)"])
    }
}
