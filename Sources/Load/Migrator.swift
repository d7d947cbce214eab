import Event
import Platform
import Postgres
import Schema

/// Creates and upgrades the schema.
package enum Migrator {
    /// What a run did.
    package struct Outcome: Equatable, Sendable {
        /// Names of the migrations applied now, oldest first.
        package let applied: [String]
        /// The version that the schema has.
        package let version: Int
    }

    /// Applies the migrations that the database lacks, each in its own transaction.
    ///
    /// Safe to run from any number of processes at once: they take turns.
    ///
    /// - Throws: ``LoadError``; the migrations before the one that failed stay applied.
    package static func migrate(
        _ connection: borrowing PostgresConnection,
        migrations: [Schema.Migration] = Schema.migrations
    ) throws(LoadError) -> Outcome {
        // "Tapl" in ASCII, then 1: no other program's lock.
        _ = try connection.statement(
            "SET client_min_messages = warning; SELECT pg_advisory_lock(1415672940, 1)")
        defer {
            _ = try? connection.execute("SELECT pg_advisory_unlock(1415672940, 1)")
        }
        _ = try connection.statement(
            """
            CREATE SCHEMA IF NOT EXISTS tapline;
            CREATE TABLE IF NOT EXISTS tapline.schema_version (
                version int PRIMARY KEY, name text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
            COMMENT ON TABLE tapline.schema_version IS 'Migrations applied to this database'
            """)
        var version = Int(
            try connection.statement(
                "SELECT coalesce(max(version), 0) FROM tapline.schema_version"
            ).int64(0, 0) ?? 0)
        let newest = migrations.last?.version ?? 0
        guard version <= newest else {
            throw .schema(
                "schema of the database is version \(version), this program knows up to \(newest)")
        }
        var applied: [String] = []
        for migration in migrations where migration.version > version {
            do throws(LoadError) {
                _ = try connection.statement(
                    """
                    BEGIN;
                    \(migration.sql);
                    INSERT INTO tapline.schema_version (version, name)
                        VALUES (\(migration.version), '\(migration.name)')
                    """)
                Failpoint.reach("migrate")
                _ = try connection.statement("COMMIT")
            } catch {
                _ = try? connection.execute("ROLLBACK")
                throw error
            }
            applied.append("\(migration.version) \(migration.name)")
            version = migration.version
        }
        try makeFunctions(connection)
        return Outcome(applied: applied, version: version)
    }

    /// Makes the functions, and the views over them, anew where their text is of another version of
    /// the program.
    private static func makeFunctions(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) {
        let definition = Schema.functions
        let comment =
            "Views for BI tools (docs/reports.md); text \(Hex.encode(sha256(Array(definition.utf8))))"
        let present = try connection.statement(
            "SELECT obj_description(to_regnamespace('reporting'), 'pg_namespace')")
        if present.string(0, 0) == comment { return }
        do throws(LoadError) {
            _ = try connection.statement(
                "BEGIN;\n\(definition);\nCOMMENT ON SCHEMA reporting IS '\(comment)';\nCOMMIT")
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }
}
