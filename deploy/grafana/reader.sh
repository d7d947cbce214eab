#!/usr/bin/env bash
# Run once by the postgres image: a role that can read everything and change nothing, for Grafana.
set -euo pipefail
psql --set=ON_ERROR_STOP=1 --set=password="$READER_PASSWORD" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE tapline_reader LOGIN PASSWORD :'password';
GRANT pg_read_all_data TO tapline_reader;
SQL
