import Client
import Glibc
import Options
import Platform

/// `tapline tail`: events of an app as they come.
func runTail(_ parsed: Parsed) -> Int32 {
    let url =
        parsed.value("url") ?? surroundings.variable("TAPLINE_URL") ?? "http://127.0.0.1:8080"
    guard let key = parsed.value("key") ?? surroundings.variable("TAPLINE_KEY") else {
        return complainOfNoKey("tapline tail")
    }
    let query = ["type", "campaign", "device", "message"].compactMap { name in
        parsed.value(name).map { "\(name)=\(percentEncoded($0))" }
    }
    let path = "/v1/tail" + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    let terminal = Terminal(descriptor: 1, surroundings: surroundings)
    let isTable = parsed.value("format") != "ndjson"
    var left = parsed.number("count") ?? Int.max
    var shownTrouble: String?
    do throws(ClientError) {
        var stream = try EventStream(
            url: url, key: key, path: path, userAgent: "tapline-tail/\(taplineVersion)")
        while left > 0 {
            for event in try stream.next(timeoutMilliseconds: 1_000) where left > 0 {
                if event.name == "missed" {
                    complain(
                        "tapline tail: some were left out, as this reads too slowly: \(event.data)")
                    continue
                }
                left -= 1
                let text = isTable ? line(of: event.data, on: terminal) : event.data
                let code = print(text + "\n")
                if code != 0 { return code }
            }
            if let trouble = stream.trouble, trouble != shownTrouble {
                complain("tapline tail: waiting: \(trouble)")
            }
            shownTrouble = stream.trouble
        }
        return 0
    } catch {
        complain("tapline tail: \(error.message)")
        if case .badURL = error { return 2 }
        return 1
    }
}

/// An event for people: when it came, what happened, then whatever names it.
private func line(of data: String, on terminal: Terminal) -> String {
    guard let json = JSONValue.parse(Array(data.utf8)), let event = json["event"] else {
        return data
    }
    let time = (json["received_at"]?.string ?? "").dropFirst(11).prefix(12)
    let type = json["type"]?.string ?? ""
    let word = type == "custom" ? event["type"]?.string ?? type : type
    let colour = ["clicked": 32, "action": 32, "failed": 31, "sent": 2][type] ?? 36
    var words = [
        String(time),
        terminal.styled(word + String(repeating: " ", count: max(0, 14 - word.count)), colour),
    ]
    let names = [
        ("campaign_id", "campaign"), ("message_uid", "message"), ("inbox_message_uid", "inbox"),
        ("device_id", "device"), ("action_id", "action"), ("platform", "platform"),
        ("app_version", "version"), ("provider", "provider"),
    ]
    for (name, shown) in names {
        guard let value = event[name]?.string else { continue }
        let text = quoted(value)
        let plain = !value.isEmpty && !value.contains(" ") && text.count == value.count + 2
        words.append("\(shown)=\(plain ? value : text)")
    }
    return words.joined(separator: " ")
}
