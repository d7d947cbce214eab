import Glibc

/// The colours of the page, with enough contrast to read them (WCAG 2, AA).
struct Palette {
    /// `#rrggbb`, by the names of the style sheet.
    let colours: [(name: String, value: String)]

    subscript(name: String) -> String { colours.first { $0.name == name }?.value ?? "" }

    var declarations: String { colours.map { "--\($0.name):\($0.value);" }.joined() }

    static let light = Palette(colours: [
        ("paper", "#ffffff"), ("raised", "#f4f6f8"), ("text", "#1b1f24"), ("muted", "#525b66"),
        ("grid", "#dfe3e8"), ("axis", "#7a838d"), ("bar", "#2a6fb8"), ("click", "#b5500f"),
        ("warn", "#8a3b00"),
        ("shade0", "#eef1f4"), ("shade1", "#fbd9bd"), ("shade2", "#f4b183"),
        ("shade3", "#e0823f"), ("shade4", "#b5500f"), ("shade5", "#6f2b00"),
    ])

    static let dark = Palette(colours: [
        ("paper", "#14181d"), ("raised", "#1e242b"), ("text", "#e7eaee"), ("muted", "#a9b3be"),
        ("grid", "#313942"), ("axis", "#7d8792"), ("bar", "#5fa8ec"), ("click", "#f0985a"),
        ("warn", "#ffb782"),
        ("shade0", "#1e242b"), ("shade1", "#4a2c17"), ("shade2", "#7d431c"),
        ("shade3", "#b5622a"), ("shade4", "#f0985a"), ("shade5", "#ffd9bd"),
    ])

    /// How much lighter one colour is than another: 1 to 21 (WCAG 2, "contrast ratio").
    static func contrast(_ one: String, _ other: String) -> Double {
        let (a, b) = (luminance(one), luminance(other))
        return (max(a, b) + 0.05) / (min(a, b) + 0.05)
    }

    private static func luminance(_ colour: String) -> Double {
        let number = Int(colour.dropFirst(), radix: 16) ?? 0
        let parts = [number >> 16 & 255, number >> 8 & 255, number & 255].map { part -> Double in
            let value = Double(part) / 255
            return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    }
}

/// The style sheet of the page.
enum PageStyle {
    static var text: Markup {
        var rules = "<style>\n:root{color-scheme:light dark;\(Palette.light.declarations)}\n"
        rules += "@media (prefers-color-scheme:dark){:root{\(Palette.dark.declarations)}}\n"
        rules += fixed
        for shade in 0...HeatMap.shades { rules += ".shade\(shade){fill:var(--shade\(shade))}\n" }
        rules += "@media print{:root{color-scheme:light;\(Palette.light.declarations)}}\n</style>"
        // No text of events, and nothing that XML reads otherwise.
        return Markup(stringLiteral: rules)
    }

    private static let fixed = """
        *{box-sizing:border-box}
        body{margin:0 auto;padding:24px 16px;max-width:1120px;background:var(--paper);
        color:var(--text);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
        h1{font-size:26px;margin:0 0 4px;line-height:1.2;overflow-wrap:anywhere}
        h2{font-size:18px;margin:0 0 2px;line-height:1.3}
        section{margin:28px 0 0}
        .note,.lead{color:var(--muted);margin:0 0 12px;max-width:75ch}
        .pair{display:grid;grid-template-columns:1fr 1fr;gap:0 40px}
        .pair section{min-width:0}
        dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:12px 0 0;
        font-size:14px}
        dl.facts dt{color:var(--muted)} dl.facts dd{margin:0;overflow-wrap:anywhere}
        ul.tiles{list-style:none;display:grid;gap:12px;padding:0;margin:20px 0 0;
        grid-template-columns:repeat(auto-fit,minmax(150px,1fr))}
        ul.tiles li{background:var(--raised);border-radius:8px;padding:12px 14px}
        ul.tiles b{display:block;font-size:26px;line-height:1.25;font-weight:600}
        ul.tiles span{display:block;font-size:13px;color:var(--muted)}
        svg{display:block;overflow:visible} svg svg{overflow:hidden}
        svg.beside{padding-left:46px} svg svg.open{overflow:visible}
        svg text.halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
        svg text{font-size:13px;fill:var(--text);font-variant-numeric:tabular-nums}
        svg text.tick{font-size:12px;fill:var(--muted)} svg text.value{font-weight:600}
        .grid{stroke:var(--grid)} .axis{stroke:var(--axis)}
        .whole{stroke:var(--muted);stroke-dasharray:4 3}
        .bar{fill:var(--bar)} .click{fill:var(--click)}
        .whisker{stroke:var(--bar);stroke-width:2} .dot{fill:var(--bar);stroke:var(--paper)}
        .curve{fill:none;stroke:var(--bar);stroke-width:2.5;vector-effect:non-scaling-stroke;
        stroke-linejoin:round}
        svg text.narrow{font-size:12px} .narrow{display:none} .pair .name.narrow{display:inline} .pair .wide{display:none}
        details{margin:8px 0 0} summary{cursor:pointer;color:var(--muted);font-size:14px}
        .scroll{overflow-x:auto}
        table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;margin:6px 0}
        caption{text-align:left;color:var(--muted);font-size:13px;padding:2px 0}
        th,td{padding:3px 12px 3px 0;text-align:right;border-bottom:1px solid var(--grid);
        white-space:nowrap}
        thead th{color:var(--muted);font-weight:600;vertical-align:bottom}
        tbody th,th.first{text-align:left;font-weight:400}
        tbody th{max-width:22em;white-space:normal;overflow-wrap:break-word}
        #rows table{font-size:13px} #rows th,#rows td{padding-right:9px}
        .flags dt{font-weight:600;color:var(--warn);margin-top:10px;overflow-wrap:anywhere}
        .flags dd{margin:0 0 4px} .flags .rows{color:var(--muted);font-size:14px;
        overflow-wrap:anywhere}
        @media (max-width:640px){body{padding:16px 12px}.pair{grid-template-columns:1fr}
        .wide{display:none}.narrow{display:inline}ul.tiles{grid-template-columns:1fr 1fr}
        ul.tiles b{font-size:22px}ul.tiles li:last-child:nth-child(odd){grid-column:1/-1}
        dl.facts{grid-template-columns:1fr;gap:0}
        dl.facts dd{margin:0 0 4px}tbody th{min-width:9em}}
        @media print{body{max-width:none;padding:0;font-size:12px}section{break-inside:avoid}
        details,section.long{break-inside:auto}tr{break-inside:avoid}
        details::details-content{content-visibility:visible;height:auto}
        .bar,.shade,rect,path,circle{print-color-adjust:exact;-webkit-print-color-adjust:exact}
        .scroll{overflow:visible}#rows table{font-size:9px}
        #rows th,#rows td{padding-right:5px}}

        """
}
