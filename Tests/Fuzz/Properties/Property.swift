/// Something that has to hold for any bytes; a violation is a text that says what is wrong.
///
/// A trap is a violation too, which ends the process.
package enum Property: String, CaseIterable, Sendable {
    /// The JSON scanner judges as simdjson does, and what it lists is in the text.
    case json
    /// The inflater gives what zlib gives.
    case gzip
    /// A body is cut into its lines and elements, and each has one verdict.
    case lines
    /// A time that is read is one that can be written and read again.
    case time
    /// A spool segment of any bytes is read to its end, and no record is made up.
    case spool
    /// A body of any source is refused as a whole or comes to lines, and each has one verdict.
    case source
    /// A head of any bytes is refused, or all agree where its request ends; its target and the
    /// parameters of a report are read as another decoder reads them, and within their limits.
    case head

    /// Checks one input.
    ///
    /// - Returns: What is wrong; nil when all is well.
    package func violation(_ input: [UInt8]) -> String? {
        switch self {
        case .json: JSONProperty.violation(input)
        case .gzip: GzipProperty.violation(input)
        case .lines: LinesProperty.violation(input)
        case .time: TimeProperty.violation(input)
        case .spool: SpoolProperty.violation(input)
        case .source: SourceProperty.violation(input)
        case .head: HeadProperty.violation(input)
        }
    }

    /// Inputs to begin with: what is kept in `Tests/Fuzz/corpus`, and some that are made.
    package var madeSeeds: [[UInt8]] {
        switch self {
        case .json: JSONProperty.seeds
        case .gzip: GzipProperty.seeds
        case .lines: LinesProperty.seeds
        case .time: TimeProperty.seeds
        case .spool: SpoolProperty.seeds
        case .source: SourceProperty.seeds
        case .head: HeadProperty.seeds
        }
    }
}
