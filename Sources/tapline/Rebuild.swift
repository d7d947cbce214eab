import Load
import Options

/// `tapline rebuild`: makes what reports are read from anew.
func runRebuild(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    withStore(try StoreOptions(parsed), command: "rebuild") { connection throws(LoadError) in
        let events = try Rebuild.run(connection)
        return print(
            "the sums of reports are made anew from \(grouped(Int(events))) events; "
                + "\"tapline check --reports\" proves them\n")
    }
}
