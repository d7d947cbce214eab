/// A sample of the file of settings: every key with its default, as a comment.
///
/// `deploy/tapline.conf` is this text.
package func sampleConfig() -> String {
    var text = """
        # Settings of tapline. Made by "tapline help --sample-config"; a test holds it true.
        #
        # Lines are "key = value". A "#" at the start of a line, or after a space, begins a
        # comment; a value with spaces at its ends, "#" or quotes goes between double quotes.
        # Sizes have a unit (64MiB, 10GB), durations too (500ms, 30s, 5min, 24h, 7d).
        # Flags win over variables of the environment, variables over this file.
        # "tapline serve --config FILE --print-config" shows what holds, and why.

        """
    var defaults = ServeSettings()
    defaults.dataDirectory = "/var/lib/tapline"
    for spec in SettingSpec.all {
        let value = spec.text(of: defaults) ?? "host=db.internal dbname=tapline user=tapline"
        text += "\n# \(spec.help.prefix(1).uppercased())\(spec.help.dropFirst()) "
        text += "(\(spec.variable))\n#\(spec.key) = \(value)\n"
    }
    return text
}
