/// The maps that the program brings along.
package enum ReadyMap {
    /// Names and texts.
    package static let all: [(name: String, text: String)] = [
        ("vibes-push-messages", vibesPushMessages)
    ]

    /// The text of a map.
    package static func named(_ name: String) -> String? { all.first { $0.name == name }?.text }

    private static let vibesPushMessages = """
        # The daily push message extract of Vibes: a row for each push that it sent to a device.
        separator    = tab
        # A key is of one app, and so is what it imports: see --only.
        app          = app_id
        # A token is as good as a key to the device, and the text is the same for all of a campaign.
        drop         = push_token content

        provider     = "vibes"
        message_uid  = message_id
        device_id    = vibes_device_id?
        person_id    = person_id?
        platform     = os?
        campaign_id  = activity_type? ":" activity_id?
        occurred_at  = receipt_at

        # Whatever became of it, it was sent; the second event says that it was refused.
        event
        type         = "sent"

        event if response_text is not "" "Success"
        type         = "failed"

        """
}
