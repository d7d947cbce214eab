import Postgres

/// Two or more campaigns, pair by pair: is the difference of a rate real?
package struct Comparison: Sendable {
    /// One pair of campaigns.
    package struct Pair: Sendable {
        /// Places in ``Comparison/campaigns``.
        package let first: Int
        package let second: Int
        /// Of the first's rate less the second's; nil where one of them has none.
        package let difference: Statistics.Difference?
        /// Holm's, over all pairs with a p; with two campaigns p itself.
        package let adjustedP: Double?
        /// Units each campaign needs to see a difference as large as this one; nil if there is none.
        package let unitsNeeded: Int64?
        package let verdict: Verdict
    }

    package enum Verdict: String, Sendable {
        case firstHigher = "first_higher"
        case secondHigher = "second_higher"
        case noDifference = "no_difference"
        case notEnoughData = "not_enough_data"
    }

    /// What the rows are of.
    package let report: CampaignReport
    /// The rate that is compared.
    package let rate: ReportRate
    /// The campaigns in the order asked for; one that no event names knows nothing.
    package let campaigns: [ReportRow]
    /// Every pair, the first campaign's first.
    package let pairs: [Pair]

    /// Compares campaigns of a report by campaign.
    ///
    /// - Parameters:
    ///   - names: At least two different campaign ids.
    ///   - rate: Nil for the headline: `ctr_delivered`, or `ctr_accepted` where receipts are biased.
    ///   - report: By campaign alone, over all campaigns.
    /// - Throws: ``ReportError/invalidOption(name:value:reason:)`` when an id is of several apps.
    package init(
        _ names: [String], by rate: ReportRate?, of report: CampaignReport
    ) throws(ReportError) {
        var rows: [ReportRow] = []
        for name in names {
            let found = report.rows.filter { $0.campaign == name }
            guard found.count <= 1 else {
                let apps = found.compactMap(\.app).joined(separator: ", ")
                throw .invalidOption(
                    name: "campaign", value: name,
                    reason: "of several apps (\(apps)): choose one with --app")
            }
            rows.append(found.first ?? ReportRow(unknown: name))
        }
        let isBiased = rows.contains { $0.flags.contains(ReportFlag.receiptBiased.rawValue) }
        let chosen = rate ?? (isBiased ? .ctrAccepted : .ctrDelivered)
        self.report = report
        self.rate = chosen
        campaigns = rows
        pairs = Self.pairs(rows.map { $0[chosen] })
    }

    /// Reads the report that is compared; blocks until it is there.
    ///
    /// - Parameters:
    ///   - names: At least two different campaign ids.
    ///   - rate: The name of a rate; nil for the headline.
    ///   - options: What to report, but for rows and order.
    ///   - plans: Of the connection, if it is kept for more reports.
    /// - Throws: ``ReportError``.
    package static func load(
        _ names: [String], by rate: String?, _ options: ReportOptions,
        on connection: borrowing PostgresConnection, plans: ReportPlans? = nil
    ) throws(ReportError) -> Comparison {
        guard names.count >= 2, Set(names).count == names.count else {
            throw .invalidOption(
                name: "campaign", value: names.joined(separator: " "),
                reason: "not two or more different campaigns")
        }
        let chosen = rate.map(ReportRate.init(rawValue:))
        if case .some(nil) = chosen {
            let known = ReportRate.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalidOption(name: "rate", value: rate ?? "", reason: "not of \(known)")
        }
        var options = options
        options.by = [.campaign]
        options.campaign = nil
        options.sort = nil
        options.top = nil
        let needsJourneys = chosen == .influencedRate || chosen == .conversionRate
        options.journeys = needsJourneys ? .always : .never
        return try Comparison(
            names, by: chosen ?? nil, of: CampaignReport.load(options, on: connection, plans: plans)
        )
    }

    private static func pairs(_ rates: [RateValue]) -> [Pair] {
        var places: [(Int, Int)] = []
        for first in rates.indices {
            for second in rates.indices where first < second { places.append((first, second)) }
        }
        let differences = places.map { place -> Statistics.Difference? in
            let (a, b) = (rates[place.0], rates[place.1])
            guard let x = a.numerator, let n = a.denominator, let y = b.numerator,
                let m = b.denominator
            else { return nil }
            return Statistics.difference(x, of: n, y, of: m)
        }
        // Only what can give a verdict is one of the questions asked.
        let tested = differences.indices.filter {
            differences[$0]?.hasEnoughData == true && differences[$0]?.p != nil
        }
        let adjusted = Statistics.holm(tested.map { differences[$0]!.p! })
        let byPair = Dictionary(uniqueKeysWithValues: zip(tested, adjusted))
        return places.indices.map { index in
            let (first, second) = places[index]
            let difference = differences[index]
            let p = byPair[index]
            let verdict: Verdict =
                if let p, let difference {
                    p >= 0.05
                        ? .noDifference : difference.value > 0 ? .firstHigher : .secondHigher
                } else {
                    .notEnoughData
                }
            return Pair(
                first: first, second: second, difference: difference, adjustedP: p,
                unitsNeeded: difference.flatMap { _ in
                    Statistics.unitsNeeded(rates[first].value!, rates[second].value!)
                },
                verdict: verdict)
        }
    }

    /// How many more units a campaign needs, beyond those it has, for a pair's ``Pair/unitsNeeded``.
    package func moreUnits(_ pair: Pair, of campaign: Int) -> Int64? {
        guard let needed = pair.unitsNeeded, let has = campaigns[campaign][rate].denominator else {
            return nil
        }
        return max(0, needed - has)
    }
}

extension ReportRow {
    /// A campaign that no event names.
    fileprivate init(unknown campaign: String) {
        self.init(
            app: nil, campaign: campaign, dimensions: [],
            counts: ReportCount.allCases.map { _ in nil },
            rates: ReportRate.allCases.map { _ in
                RateValue(numerator: nil, denominator: nil, value: nil, low: nil, high: nil)
            }, timeToOpen: nil, actionShares: nil, flags: [])
    }
}
