/// One event before it is written. What is random in the writing comes from `detail`, so that
/// the same event can be written again.
struct Draft {
    var type: String
    /// Milliseconds since 1970 by a right clock.
    var at: Int64
    var device: Device?
    var message: UniqueID?
    var inboxMessage: UniqueID?
    var eventUID: UniqueID?
    var campaign: String?
    var actionID: String?
    var opensApp: Bool?
    var isSilent = false
    /// Whether the sender logs it, whose clock is right.
    var isFromServer = false
    /// False for an event that has an `event_uid` and no time.
    var hasTime = true
    var properties = PropertiesKind.none
    var detail: UInt64
}

/// What stands in `properties`.
enum PropertiesKind {
    case none, conversion, custom
}

extension Draft {
    /// Writes the event as one JSON object.
    ///
    /// - Parameter sentAt: When the client sends it, in milliseconds by a right clock.
    func write(to writer: inout LineWriter, app: SampleApp, sentAt: Int64) {
        var random = SplitMix64(seed: detail)
        let platform = device?.platform ?? .android
        let upperCase = device?.platform == .ios
        let isOld = app == .games
        writer.open()
        let word = message == nil ? type : app.word(type, platform, &random)
        writer.text(isOld ? "event" : "type", word)
        if let message { writer.identifier("message_uid", message, upperCase: upperCase) }
        if let inboxMessage {
            writer.identifier("inbox_message_uid", inboxMessage, upperCase: false)
        }
        if let eventUID {
            writer.identifier(isOld ? "uuid" : "event_uid", eventUID, upperCase: upperCase)
        }
        if let device { writer.text("device_id", device.id) }
        writeCampaign(to: &writer, app: app)
        if let actionID {
            writer.text("action_id", actionID)
            writer.text("category_id", "article")
        }
        if let opensApp { writer.json("opens_app", opensApp ? "true" : "false") }
        if hasTime { writeTimes(to: &writer, app: app, sentAt: sentAt, &random) }
        if let device, !isFromServer {
            writer.text("platform", device.platform.rawValue)
            writer.text("app_version", device.appVersion)
            writer.text("os_version", device.osVersion)
            writer.text("locale", device.locale)
            writer.text("country", device.country)
            if device.isTest { writer.json("is_test", "true") }
        } else {
            writer.text("provider", platform.provider)
        }
        if isSilent { writer.json("silent", "true") }
        // A top-level field that no table knows is kept with the properties.
        if random.chance(40) { writer.json("battery", "0.\(random.below(90) + 10)") }
        writeProperties(to: &writer, isOld ? "attributes" : "properties", &random)
        writer.close()
    }

    private func writeCampaign(to writer: inout LineWriter, app: SampleApp) {
        guard let campaign else { return }
        switch app {
        case .shop: writer.text("campaign_id", campaign)
        case .news: writer.json("campaign_id", campaign)
        case .games:
            let parts = campaign.split(separator: ":")
            writer.text("activity_type", String(parts[0]))
            writer.text("activity_uid", String(parts[1]))
        }
    }

    private func writeTimes(
        to writer: inout LineWriter, app: SampleApp, sentAt: Int64, _ random: inout SplitMix64
    ) {
        let client = isFromServer ? nil : device
        var style: TimeStyle =
            switch client?.platform {
            case .ios: .zuluMilliseconds
            case .android: .offset
            case .web: .epochMilliseconds
            case nil: .zulu
            }
        if random.chance(30) { style = TimeStyle.allCases[random.below(TimeStyle.allCases.count)] }
        let skew = client?.skew ?? 0
        let name = app == .games ? "timestamp" : "occurred_at"
        writer.time(name, at + skew, style)
        if client?.saysSentAt == true { writer.time("sent_at", sentAt + skew, style) }
    }

    private func writeProperties(
        to writer: inout LineWriter, _ name: String, _ random: inout SplitMix64
    ) {
        switch properties {
        case .none:
            // NUL and half a surrogate pair are wrong in text for a database, and do occur.
            switch random.below(4000) {
            case 0: writer.json(name, #"{"title":"a\u0000b"}"#)
            case 1: writer.json(name, #"{"title":"cut \ud83d"}"#)
            case 2..<40: writer.json(name, #"{"title":"Hallo 👋🏽 \ud83d\ude00","badge":3}"#)
            default: break
            }
        case .conversion:
            let cents = random.below(90) + 10
            writer.json(
                name,
                #"{"value":\#(random.below(200) + 5).\#(cents),"currency":"EUR","items":[{"sku":"#
                    + #""A-\#(random.below(5000))","qty":\#(random.below(3) + 1)}]}"#)
        case .custom:
            writer.json(
                name,
                #"{"screen":"home","step":\#(random.below(12)),"flags":[true,false,null],"#
                    + #""nested":{"path":["a","b\n",{"deep":{"er":\#(random.below(100))}}]},"#
                    + #""text":"Grüße 🎉, \"quoted\" \\ and / slashes"}"#)
        }
    }
}
