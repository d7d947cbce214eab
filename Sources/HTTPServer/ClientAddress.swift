import Glibc

/// The address of a client; an IPv4 address is held as IPv6 holds it, so both compare equal.
package struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64  // network order read as big-endian
    private let low: UInt64

    /// The address of a socket address of either family; `::` for others.
    init(_ address: UnsafePointer<sockaddr>?) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if let address = unsafe address {
            // SAFETY: the family says which structure is behind the pointer.
            let raw = unsafe UnsafeRawPointer(address)
            switch unsafe Int32(address.pointee.sa_family) {
            case AF_INET6:
                for index in 0..<16 {
                    bytes[index] = unsafe raw.load(fromByteOffset: 8 + index, as: UInt8.self)
                }
            case AF_INET:
                bytes[10] = 0xFF
                bytes[11] = 0xFF
                for index in 0..<4 {
                    bytes[12 + index] = unsafe raw.load(fromByteOffset: 4 + index, as: UInt8.self)
                }
            default: break
            }
        }
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// What one client has for itself: an IPv4 address, or the 64 bits of a network of IPv6, in which it
    /// may choose any address.
    var network: ClientAddress {
        isIPv4 ? self : ClientAddress(high: high, low: 0)
    }

    private var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The usual text of the address, without a port.
    package var description: String {
        if isIPv4 {
            return "\(low >> 24 & 255).\(low >> 16 & 255).\(low >> 8 & 255).\(low & 255)"
        }
        var address = in6_addr()
        unsafe withUnsafeMutableBytes(of: &address) { bytes in
            unsafe bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
            unsafe bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        unsafe inet_ntop(AF_INET6, &address, &text, socklen_t(text.count))
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
