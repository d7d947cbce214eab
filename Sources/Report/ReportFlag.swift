/// An impossible or suspect state of a row: what it means, and what to do about it.
package enum ReportFlag: String, CaseIterable, Sendable {
    case campaignMismatch = "campaign_mismatch"
    case ctr100Percent = "ctr_100_percent"
    case sentWithoutDevice = "sent_without_device"
    case receiptBiased = "receipt_biased"
    case clicksBeforeReceipts = "clicks_before_receipts"
    case tapsNotForwarded = "taps_not_forwarded"
    case ctrDrop = "ctr_drop"

    /// A sentence for people who did not write the SDK.
    package var meaning: String {
        switch self {
        case .campaignMismatch: "The events of some messages name different campaigns."
        case .ctr100Percent: "Everybody who got the message tapped it, which does not happen."
        case .sentWithoutDevice:
            "The sender logs messages to several devices without saying to which."
        case .receiptBiased: "On iOS a tap is reported as a receipt, too."
        case .clicksBeforeReceipts: "Some messages were tapped before they arrived."
        case .tapsNotForwarded:
            "The app is opened right after messages arrive, but no tap is ever reported."
        case .ctrDrop: "Click-through is less than half that of the app version before."
        }
    }

    /// What to do about it.
    package var advice: String {
        switch self {
        case .campaignMismatch:
            "Each message is counted for the campaign of its first send. Look for a sender that "
                + "uses a message id twice."
        case .ctr100Percent:
            "The app probably reports a tap where it should report a receipt. Check its SDK calls."
        case .sentWithoutDevice:
            "Let the sender log device_id with each sent, or send one message id a device; until "
                + "then what was sent is unknown."
        case .receiptBiased:
            "Do not trust ctr_delivered here: compare by ctr_accepted, whose denominator is what "
                + "was sent and not refused."
        case .clicksBeforeReceipts:
            "Receipts are reported late or lost. Those taps are left out of the time to open."
        case .tapsNotForwarded:
            "The app does not hand taps to the SDK. Look at --by app_version to find the version "
                + "where it began."
        case .ctrDrop:
            "Check that the new version still reports taps before you blame the campaign."
        }
    }
}
