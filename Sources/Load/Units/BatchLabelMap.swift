/// The labels of a batch as those of the open segment: a text is looked up once a batch, not once a
/// row.
///
/// Only what rows are stored with is looked up, so that repeats add no label to the segment.
struct BatchLabelMap {
    /// By the number of the batch's label; nil is not looked up yet.
    private var campaigns: [UInt32?]
    private var profiles: [UInt32?]

    init(_ batch: borrowing LoadBatch) {
        let counts = batch.labelCounts
        campaigns = Array(repeating: nil, count: counts.campaigns)
        profiles = Array(repeating: nil, count: counts.profiles)
    }

    /// The labels of a row in the open segment.
    mutating func labels(
        ofRow row: Int, _ batch: borrowing LoadBatch, _ open: inout OpenSegment
    ) -> (campaign: UInt32, profile: UInt32) {
        let (campaign, profile) = batch.labels[row]
        return (
            self.campaign(campaign, batch, &open),
            profile == ProfileLabel.none ? profile : self.profile(profile, batch, &open)
        )
    }

    private mutating func campaign(
        _ label: UInt32, _ batch: borrowing LoadBatch, _ open: inout OpenSegment
    ) -> UInt32 {
        let number = CampaignLabel.number(label)
        if let known = campaigns[number] { return known }
        let fields = batch.campaignFields(label)
        let found = open.campaignLabel(fields.rawSpan, as: label)
        campaigns[number] = found
        return found
    }

    private mutating func profile(
        _ label: UInt32, _ batch: borrowing LoadBatch, _ open: inout OpenSegment
    ) -> UInt32 {
        let number = ProfileLabel.number(label)
        if let known = profiles[number] { return known }
        let fields = batch.profileFields(label)
        let found = open.profileLabel(fields.rawSpan, as: label)
        profiles[number] = found
        return found
    }
}
