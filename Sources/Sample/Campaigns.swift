extension Generator {
    /// Makes every campaign's messages and what came of them.
    mutating func makeCampaigns() {
        for campaign in app.campaigns {
            let begin = anchor - Int64(campaign.sentTenthsOfDaysAgo) * 8_640_000
            let audience = max(campaign.audience * options.percent / 100, 10)
            var first = random.below(devices.count)
            var count = 0
            while count < audience {
                let message = UniqueID(&random)
                let at = begin + Int64(random.below(1_800_000))
                // A person with several devices gets one message on each of them.
                let reach = app == .news && random.chance(25) ? 2 : 1
                for copy in 0..<reach {
                    let device = devices[first % devices.count]
                    first += 1
                    count += 1
                    makeUnit(campaign, device, message, at: at, isFirst: copy == 0)
                }
            }
        }
    }

    /// One message on one device.
    private mutating func makeUnit(
        _ campaign: Campaign, _ device: Device, _ message: UniqueID, at: Int64, isFirst: Bool
    ) {
        // Some events do not name their campaign: a `sent` heals them, or nothing does.
        let namesCampaign = !random.chance(app == .games ? 8 : 60)
        let failed = app.logsSent && random.chance(18)
        if app.logsSent, isFirst, !random.chance(15) {
            var sent = draft("sent", at: at, device: app == .news ? nil : device, hasUID: false)
            sent.message = message
            sent.campaign = campaign.id
            sent.isSilent = campaign.isSilent
            sent.isFromServer = true
            add(sent)
        }
        if failed {
            var event = draft("failed", at: at + 400, device: device, hasUID: false)
            event.message = message
            event.campaign = campaign.id
            event.isFromServer = true
            add(event)
            // The gateway was wrong about a few of them.
            if !random.chance(60) { return }
        } else if !random.chance(device.platform.deliveredPerThousand) {
            return
        }
        let unit = Unit(
            campaign: campaign, device: device, message: message,
            inbox: app == .news && random.chance(350) ? UniqueID(&random) : nil,
            named: namesCampaign ? campaign.id : nil,
            receivedAt: at + 300 + receiptDelay())
        makeReceiptsAndTaps(unit, failed: failed)
    }

    private mutating func receiptDelay() -> Int64 {
        switch random.below(100) {
        case 0..<88: random.delay(upTo: 20_000)
        case 88..<98: random.delay(upTo: 14 * 3_600_000)
        default: random.delay(upTo: 9 * 86_400_000)
        }
    }

    private mutating func makeReceiptsAndTaps(_ unit: Unit, failed: Bool) {
        if unit.campaign.isSilent {
            return addReceipt("received", unit, after: 0)
        }
        let factor = unit.device.platform == .ios ? 100 : unit.device.platform == .android ? 80 : 55
        let taps = failed || random.chance(unit.campaign.clicksPerThousand * factor / 100)
        // Receipts get lost more often than taps.
        if !(taps && random.chance(80)) { makeReceipts(unit) }
        if taps {
            makeTap(unit)
        } else if unit.device.platform != .ios, random.chance(110) {
            add(event("dismissed", unit, after: 5000 + random.delay(upTo: 6 * 3_600_000)))
        }
        if let inbox = unit.inbox { makeInbox(unit, inbox) }
    }

    private mutating func makeReceipts(_ unit: Unit) {
        switch unit.device.platform {
        case .ios:
            // On iOS `consumed` is the only callback without an extension: it means arrived.
            addReceipt(app == .games ? "received" : "consumed", unit, after: 0)
            if app == .shop, random.chance(400) { addReceipt("received", unit, after: 40) }
        case .android:
            addReceipt("received", unit, after: 0)
            if app != .games, random.chance(950) { addReceipt("displayed", unit, after: 700) }
        case .web:
            addReceipt("displayed", unit, after: 0)
        }
        if app == .news, random.chance(20) { addReceipt("confirmed", unit, after: 9000) }
    }

    private mutating func addReceipt(_ type: String, _ unit: Unit, after delay: Int64) {
        var receipt = event(type, unit, after: delay)
        receipt.isSilent = unit.campaign.isSilent
        receipt.inboxMessage = unit.inbox
        add(receipt)
    }

    private mutating func makeTap(_ unit: Unit) {
        let delay = 2000 + random.delay(upTo: 10 * 3_600_000)
        let choice = random.below(100)
        if app == .news, choice < 30 {
            var action = event("action", unit, after: delay)
            action.actionID = choice < 14 ? "read" : choice < 24 ? "save" : "share"
            // What `share` does is for the category table to say.
            action.opensApp = choice < 14 ? true : choice < 24 ? false : nil
            add(action)
        } else {
            var tap = event("clicked", unit, after: delay, hasUID: true)
            // Now and then another campaign's link is behind the tap.
            if random.chance(3) { tap.campaign = app.campaigns[0].id }
            add(tap)
            if random.chance(60) {
                add(
                    event(
                        "clicked", unit, after: delay + 3000 + random.delay(upTo: 60_000),
                        hasUID: true))
            }
        }
        if random.chance(750) {
            let at = unit.receivedAt + delay + 800 + Int64(random.below(3000))
            add(draft("launch", at: at, device: unit.device, hasUID: true))
        }
        if app == .shop, random.chance(90) {
            let at = unit.receivedAt + delay + 60_000 + random.delay(upTo: 20 * 3_600_000)
            var conversion = draft("conversion", at: at, device: unit.device)
            conversion.properties = .conversion
            add(conversion)
        }
    }

    private mutating func makeInbox(_ unit: Unit, _ inbox: UniqueID) {
        add(inboxEvent("inbox_received", unit, inbox, after: 1500))
        guard random.chance(180) else { return }
        let delay = 60_000 + random.delay(upTo: 30 * 3_600_000)
        add(inboxEvent("inbox_open", unit, inbox, after: delay))
        if random.chance(400) { add(inboxEvent("inbox_read", unit, inbox, after: delay + 4000)) }
        if random.chance(100) { add(inboxEvent("inbox_deleted", unit, inbox, after: delay + 9000)) }
    }

    /// An inbox event names its message in one of two ways.
    private mutating func inboxEvent(
        _ type: String, _ unit: Unit, _ inbox: UniqueID, after delay: Int64
    ) -> Draft {
        var draft = draft(type, at: unit.receivedAt + delay, device: unit.device)
        if random.chance(500) { draft.inboxMessage = inbox } else { draft.message = inbox }
        return draft
    }

    private mutating func event(
        _ type: String, _ unit: Unit, after delay: Int64, hasUID: Bool? = nil
    ) -> Draft {
        var draft = draft(type, at: unit.receivedAt + delay, device: unit.device, hasUID: hasUID)
        draft.message = unit.message
        draft.campaign = unit.named
        return draft
    }
}

/// One message that reached one device.
private struct Unit {
    let campaign: Campaign
    let device: Device
    let message: UniqueID
    let inbox: UniqueID?
    /// The campaign as the device's events name it.
    let named: String?
    let receivedAt: Int64
}
