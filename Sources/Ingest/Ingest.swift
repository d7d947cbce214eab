// Ingest: see docs/architecture.md
