/// The counts of a campaign that a check compares.
package struct CampaignCounts: Equatable, Sendable {
    package var sent: Int64 = 0
    package var delivered: Int64 = 0
    package var clicked: Int64 = 0
    package var clicksTotal: Int64 = 0

    /// All zero.
    package init() {}

    /// As in messages.
    package var text: String {
        "\(sent) sent, \(delivered) delivered, \(clicked) clicked, \(clicksTotal) clicks_total"
    }
}

/// Counts the messages of a run again from its events alone, by the rules of docs/reports.md: a second
/// opinion on the report, which knows nothing of tables, batches and cells.
///
/// - Parameter counts: Whether the event of a number is among those that the report is of.
/// - Returns: A row a campaign of the run, in order.
package func recount(_ plan: BenchPlan, where counts: (Int) -> Bool) -> [CampaignCounts] {
    var campaigns = BenchEvent.clickPercents.map { _ in CampaignCounts() }
    for story in 0..<(plan.events + BenchEvent.perStory - 1) / BenchEvent.perStory {
        let first = story * BenchEvent.perStory
        // A message has one device, so it is one unit; an event without a device belongs to it.
        var campaign: Int?
        var isSent = false
        var isDelivered = false
        var clicks: Int64 = 0
        for number in first..<min(first + BenchEvent.perStory, plan.events) where counts(number) {
            let event = BenchEvent(number, of: plan)
            if event.namesCampaign { campaign = event.campaignOfMessage }
            switch event.kind {
            case .sent: isSent = true
            case .received, .displayed, .consumed, .clicked, .action, .dismissed, .inboxOpen:
                isDelivered = true
            default: break
            }
            if event.isClick { clicks += 1 }
        }
        guard let campaign else { continue }
        campaigns[campaign].sent += isSent ? 1 : 0
        campaigns[campaign].delivered += isDelivered ? 1 : 0
        campaigns[campaign].clicked += clicks > 0 ? 1 : 0
        campaigns[campaign].clicksTotal += clicks
    }
    return campaigns
}
