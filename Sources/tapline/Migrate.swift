import Options

/// `tapline migrate`: the schema.
func runMigrate(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    migrate(try StoreOptions(parsed))
}
