// The plots of the page: what each shows, and what is said about it.

extension HTMLReport {
    private var isEmpty: Bool { main.rows.isEmpty }
    private static let nothing = "No messages in this period."

    var funnel: Figure {
        let steps: [(count: ReportCount, rate: ReportRate?)] = [
            (.sent, nil), (.accepted, nil), (.delivered, .deliveryRate), (.observed, nil),
            (.clicked, .ctrDelivered), (.engaged, .engagementRate), (.converted, .conversionRate),
        ]
        let totals = main.totals
        let bars = Bars(
            rows: steps.map { step in
                Bars.Row(
                    name: step.count.rawValue, count: totals[step.count],
                    style: [.clicked, .engaged, .converted].contains(step.count)
                        ? "bar click" : "bar")
            })
        let unknown = steps.filter { totals[$0.count] == nil }.map(\.count.rawValue)
        var note = "Messages on devices that came so far."
        if unknown.contains("sent") {
            note += " What was sent is not known: not every app logs it for every message."
        }
        if unknown.contains("converted") { note += " Conversions: --journeys always." }
        return Figure(
            id: "funnel", title: "From sent to converted", note: note,
            description: steps.map { "\($0.count.rawValue) \(grouped(totals[$0.count]))" }
                .joined(separator: ", "),
            height: bars.height, plot: bars.markup,
            table: NumberTable(
                caption: "The funnel",
                heads: ["step", "units", "rate", "value", "95\u{A0}% interval"],
                rows: steps.map { step in
                    let rate = step.rate.map { totals[$0] }
                    return [
                        step.count.rawValue, grouped(totals[step.count]),
                        step.rate?.rawValue ?? "", rate.map { percentText($0.value) } ?? "",
                        rate.map(intervalText) ?? "",
                    ]
                }))
    }

    /// Rows as intervals, the highest first.
    private func intervals(_ rows: [ReportRow], of report: CampaignReport) -> Intervals {
        let sorted = rows.sorted {
            ($0[.ctrDelivered].value ?? -1, $0[.delivered] ?? 0)
                > ($1[.ctrDelivered].value ?? -1, $1[.delivered] ?? 0)
        }
        return Intervals(
            rows: sorted.map {
                Intervals.Row(name: report.name(of: $0), rate: $0[.ctrDelivered])
            },
            whole: report.totals[.ctrDelivered])
    }

    private func table(_ rows: [ReportRow], of report: CampaignReport) -> NumberTable {
        let names = report.labelNames
        return NumberTable(
            caption: "Click-through by \(names.joined(separator: ", "))",
            heads: names + ["delivered", "clicked", "ctr_delivered", "95\u{A0}% interval"],
            rows: rows.map {
                report.labels($0) + [
                    grouped($0[.delivered]), grouped($0[.clicked]),
                    percentText($0[.ctrDelivered].value), intervalText($0[.ctrDelivered]),
                ]
            }, names: names.count)
    }

    /// The rows that a plot has room for: with the most delivered.
    private func largest(_ report: CampaignReport) -> [ReportRow] {
        let rows = report.rows.filter { ($0[.delivered] ?? 0) > 0 }
        return Array(
            (rows.isEmpty ? report.rows : rows)
                .sorted { ($0[.delivered] ?? 0) > ($1[.delivered] ?? 0) }
                .prefix(Self.plottedRows))
    }

    private func intervalsDescription(_ plot: Intervals) -> String {
        plot.rows.prefix(5).map {
            "\($0.name) \(percentText($0.rate.value)), interval \(intervalText($0.rate))"
        }.joined(separator: "; ")
    }

    var intervals: Figure {
        let rows = largest(main)
        let plot = intervals(rows, of: main)
        let by = main.by.map(\.rawValue).joined(separator: ", ")
        var note =
            "clicked / delivered with its 95\u{A0}% interval: where whiskers overlap by much, the "
            + "difference may be chance. Not corrected for looking repeatedly."
        if rows.count < main.rows.count {
            note +=
                " The \(rows.count) with the most delivered, of \(main.rows.count); "
                + "all are in the table at the end."
        }
        return Figure(
            id: "ctr", title: "Click-through by \(by)", note: isEmpty ? Self.nothing : note,
            description: "Highest first: " + intervalsDescription(plot),
            height: plot.height, plot: isEmpty ? nil : plot.markup,
            table: table(rows, of: main))
    }

    var overTime: Figure {
        let plot = TimePlot(byTime)
        let unit = byTime.by.first?.rawValue ?? ""
        let note =
            byTime.isByActivity
            ? "What happened in each \(unit)."
            : "Each message counts in the \(unit) it was first seen, however late it was tapped."
        let most = plot.most.map {
            " The most delivered: \(grouped($0.delivered)) on \($0.slot.key)."
        }
        return Figure(
            id: "time", title: "Engagement by \(unit)", note: isEmpty ? Self.nothing : note,
            description: "Delivered and clicked for \(plot.slots) \(unit)s." + (most ?? ""),
            height: plot.height, plot: plot.points.isEmpty ? nil : plot.markup, hasAxis: true,
            table: plot.table(caption: "Delivered and clicked by \(unit)"))
    }

    var heatMap: Figure {
        let plot = HeatMap(byHour)
        let isOfClicks = byHour.isByActivity
        var note = "In time zone \(byHour.timeZone). "
        if !isOfClicks {
            note +=
                "Clicks are at the hour their message was first seen; with --journeys always, at the "
                + "hour they happened."
        } else if main.isByActivity || main.from == nil && main.to == nil {
            note += "Every click at the hour it happened, repeats included."
        } else {
            note +=
                "Every click in the period, at the hour it happened, repeats included, and those on "
                + "earlier messages, too."
        }
        let peak = plot.peak.map {
            "The most clicks: \($0.weekday) \(HeatMap.time($0.hour)), \(grouped(plot.most))."
        }
        return Figure(
            id: "week",
            title: isOfClicks ? "When people tap" : "When messages come that are tapped",
            note: plot.most == 0 ? "No clicks in this period." : note,
            description: "Clicks by weekday and hour of day. " + (peak ?? ""),
            height: plot.height, plot: plot.most == 0 ? nil : plot.markup, hasAxis: true,
            table: plot.most == 0 ? nil : plot.table(caption: "Clicks by hour of day and weekday"))
    }

    var openCurve: Figure {
        let plot = OpenCurve(main.totals)
        let note =
            plot != nil
            ? "Of the messages tapped, the share that was tapped so soon after it was received, "
                + "by the device's own clock."
            : main.hasJourneys
                ? "No message has both a receipt and a later tap."
                : "Not looked at, as all events would have to be read: --journeys always."
        let description = plot.map {
            "Half within \(duration($0.time.p50)), 90 % within \(duration($0.time.p90)), "
                + "99 % within \(duration($0.time.p99)), of \(grouped($0.units)) messages tapped."
        }
        return Figure(
            id: "open", title: "Time to open", note: note, description: description ?? "",
            height: plot?.height ?? 0, plot: plot?.markup, hasAxis: true,
            table: plot?.table(caption: "Messages tapped within a time of their receipt"))
    }

    /// How many were delivered, and how many of them clicked.
    var platformFigures: [Figure] {
        let rows = largest(byPlatform)
        let bars = Bars(
            rows: rows.map { Bars.Row(name: byPlatform.name(of: $0), count: $0[.delivered]) })
        let plot = intervals(rows, of: byPlatform)
        return [
            Figure(
                id: "platforms", title: "Delivered by platform",
                note: isEmpty ? Self.nothing : "Messages on devices.",
                description: bars.rows.map { "\($0.name) \(grouped($0.count))" }
                    .joined(separator: ", "),
                height: bars.height, plot: isEmpty ? nil : bars.markup,
                table: table(byPlatform.rows, of: byPlatform)),
            Figure(
                id: "platform-ctr", title: "Click-through by platform",
                note: isEmpty ? Self.nothing : "clicked / delivered with its 95\u{A0}% interval.",
                description: "Highest first: " + intervalsDescription(plot),
                height: plot.height, plot: isEmpty ? nil : plot.markup, table: nil),
        ]
    }
}
