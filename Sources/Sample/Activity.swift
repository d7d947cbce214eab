extension Generator {
    /// What devices do without a push: launches, inbox fetches, custom events.
    mutating func makeActivity() {
        let words =
            switch app {
            case .shop: ["cart.add", "product_view"]
            case .news: ["article:read", "topic-follow"]
            case .games: ["level_up", "purchase.gems"]
            }
        for device in devices {
            for _ in 0..<random.below(3) {
                add(draft("launch", at: moment(), device: device))
            }
            if app == .news, random.chance(100) {
                add(draft("inbox_fetch", at: moment(), device: device))
            }
            if random.chance(150) {
                var custom = draft(words[random.below(2)], at: moment(), device: device)
                custom.properties = .custom
                add(custom)
            }
        }
    }

    private mutating func moment() -> Int64 { anchor - Int64(random.below(13 * 86_400_000)) }

    /// Lines that no server should take, and that no neighbour should suffer from.
    mutating func makeBadLines() {
        for kind in BadLine.allCases {
            for number in 0..<kind.count { addBad(kind, badLine(kind, number)) }
        }
    }

    private mutating func badLine(_ kind: BadLine, _ number: Int) -> [UInt8] {
        var writer = LineWriter()
        let id = UniqueID(&random)
        let device = devices[random.below(devices.count)]
        writer.open()
        switch kind {
        case .noType: break
        case .emptyType: writer.text("type", "")
        case .wrongType: writer.text("type", ["cl icked", "clicked!", "täp"][number % 3])
        case .typeIsNumber: writer.number("type", 7)
        case .noIdentity: writer.text("type", "screen_view")
        default: writer.text("type", "clicked")
        }
        switch kind {
        case .noMessage, .noIdentity: break
        case .messageTooLong: writer.text("message_uid", String(repeating: "m", count: 141))
        default: writer.identifier("message_uid", id, upperCase: false)
        }
        switch kind {
        case .nulInIdentifier: writer.text("device_id", #"d\u0000x"#)
        case .surrogateInIdentifier: writer.text("device_id", #"d\ud83dx"#)
        case .noIdentity where number % 2 == 0: break
        default: writer.text("device_id", device.id)
        }
        if kind == .campaignIsFraction { writer.json("campaign_id", "1.5") }
        if kind == .tooDeep {
            let depth = 100
            writer.json(
                "properties",
                String(repeating: "{\"a\":", count: depth) + "1"
                    + String(repeating: "}", count: depth))
        }
        if kind == .tooLong {
            writer.json("properties", "{\"x\":\"\(String(repeating: "y", count: 70_000))\"}")
        }
        // Without a device and a message a time does not make an identity.
        if kind != .noIdentity || number % 2 == 0 {
            writer.time("occurred_at", moment(), .zuluMilliseconds)
        }
        if kind == .notUTF8 {
            writer.name("properties")
            writer.raw(Array("{\"t\":\"".utf8) + [0xED, 0xA0, 0xBD] + Array("\"}".utf8))
        }
        writer.close()
        switch kind {
        case .cutOff: return Array(writer.bytes.dropLast(20 + number))
        case .notAnObject: return Array(["[1,2,3]", "\"clicked\"", "42"][number % 3].utf8)
        case .trailingText: return writer.bytes + Array(" x".utf8)
        default: return writer.bytes
        }
    }
}
