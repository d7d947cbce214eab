import JSONLines

/// A tracking event that says something of its device: what it changes is kept in
/// `tapline.device_state`.
package enum DeviceChange: String, CaseIterable, Sendable {
    case register = "device_register"
    case update = "device_update"
    case unregister = "device_unregister"

    /// Topics that a device may have.
    package static let topicsMax = 32
    /// Characters of a topic.
    package static let topicCharactersMax = 64

    /// The change that a type as sent names, if it does.
    package init?(word: RawSpan) {
        switch word.byteCount {
        case 13 where word.is("device_update"): self = .update
        case 15 where word.is("device_register"): self = .register
        case 17 where word.is("device_unregister"): self = .unregister
        default: return nil
        }
    }

    /// Whether the device is registered from then on; nil where nothing is said of it.
    package var isRegistered: Bool? {
        switch self {
        case .register: true
        case .update: nil
        case .unregister: false
        }
    }
}
