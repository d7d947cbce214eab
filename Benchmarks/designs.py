#!/usr/bin/env python3
"""Compares ways to store events once, on the rows of a real run, in one database, interleaved.

  limit     COPY into a plain table without an index: what no design can beat
  tapline   the same COPY (the keys are checked in the daemon), then the unique index in bulk
  live      COPY into a table whose unique index stands: the index grows with each row
  probe     probe the existing keys by that index, then COPY the new rows
  staged    COPY into a staging table, then INSERT … ORDER BY key ON CONFLICT DO NOTHING

Each variant stores the same 500 000 rows in transactions of 50 000; `tapline` includes its index.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench

ROWS, BATCH = 500_000, 50_000


def variant(daemon, name, parts):
    table = "variant_" + name
    daemon.sql(f"DROP TABLE IF EXISTS {table}; DROP TABLE IF EXISTS staging")
    daemon.sql(
        f"CREATE TABLE {table} (LIKE tapline.event) WITH (autovacuum_enabled = false)")
    if name in ("live", "probe", "staged"):
        daemon.sql(f"CREATE UNIQUE INDEX ON {table} (key)")
    if name in ("probe", "staged"):
        daemon.sql("CREATE UNLOGGED TABLE staging (LIKE tapline.event)")
    daemon.sql("CHECKPOINT")
    script = ""
    for part in parts:
        if name in ("probe", "staged"):
            script += f"BEGIN; TRUNCATE staging; COPY staging FROM '{part}' (FORMAT binary);\n"
            script += {
                "probe": f"INSERT INTO {table} SELECT s.* FROM staging s WHERE NOT EXISTS "
                         f"(SELECT FROM {table} e WHERE e.key = s.key);",
                "staged": f"INSERT INTO {table} SELECT * FROM staging ORDER BY key "
                          "ON CONFLICT DO NOTHING;"}[name]
            script += " COMMIT;\n"
        else:
            script += f"COPY {table} FROM '{part}' (FORMAT binary);\n"
    if name == "tapline":
        script += f"CREATE UNIQUE INDEX ON {table} (unit, key);\n"
    before = time.monotonic()
    subprocess.run(
        ["psql", "-h", daemon.socket, "-U", "tapline", "-d", "tapline", "-XAtq",
         "-v", "ON_ERROR_STOP=1"], input=script, text=True, check=True)
    seconds = time.monotonic() - before
    stored = int(daemon.sql(f"SELECT count(*) FROM {table}"))
    daemon.sql(f"DROP TABLE {table}")
    return stored / seconds


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    directory = tempfile.mkdtemp(prefix="tapline-designs-")
    files = tempfile.mkdtemp(prefix="tapline-designs-rows-")
    os.chmod(files, 0o777)
    try:
        daemon = bench.Daemon(os.path.abspath(chosen.binary), directory)
        bench.post_all(daemon, bench.bodies(ROWS, 1, time.time()))
        bench.wait_until_stored(daemon, ROWS)
        if daemon.sql("SELECT count(DISTINCT key) FROM tapline.event") != str(ROWS):
            sys.exit("an event was stored twice")
        daemon.sql("CREATE TABLE ordered AS SELECT * FROM tapline.event")
        parts = []
        for start in range(0, ROWS, BATCH):
            parts.append(os.path.join(files, f"{start}.bin"))
            daemon.sql(
                f"SET synchronize_seqscans = off; COPY (SELECT * FROM ordered OFFSET {start} LIMIT {BATCH}) "
                f"TO '{parts[-1]}' (FORMAT binary)")
        names = ["limit", "tapline", "live", "probe", "staged"]
        ratios = {name: [] for name in names}
        for _ in range(chosen.rounds):
            rates = {name: variant(daemon, name, parts) for name in names}
            print(" ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()), file=sys.stderr)
            for name in names:
                ratios[name].append(rates[name] / rates["limit"])
        print("| variant | of the limit, median | least | most |\n|---|---|---|---|")
        for name in names:
            print(f"| {name} | {statistics.median(ratios[name]):.2f} "
                  f"| {min(ratios[name]):.2f} | {max(ratios[name]):.2f} |")
        daemon.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(files, ignore_errors=True)


if __name__ == "__main__":
    main()
