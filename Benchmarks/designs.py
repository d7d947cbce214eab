#!/usr/bin/env python3
"""Compares ways to store events once, on the rows of a real run, in one database, interleaved.

  limit     COPY into a plain table without an index: what no design can beat
  tapline   the same COPY (the keys are checked in the daemon), then the unique index in bulk
  live      COPY into a table whose unique index stands: the index grows with each row
  probe     probe the existing keys by that index, then COPY the new rows
  staged    COPY into a staging table, then INSERT … ORDER BY key ON CONFLICT DO NOTHING

Each variant stores the same rows in transactions of 50 000; `tapline` includes its index.
"""
import argparse
import os
import shutil
import statistics

from common import daemon, document, events, load, measure

ROWS = 500_000
NAMES = ["limit", "tapline", "live", "probe", "staged"]


def variant(one, name, files):
    """Rows/s of one way to store the rows."""
    if name == "limit":
        return measure.limit(one, files)
    if name == "staged":
        return measure.staged(one, files, 1)
    one.sql("CREATE TABLE variant (LIKE tapline.event) WITH (autovacuum_enabled = false)")
    script = ""
    if name in ("live", "probe"):
        one.sql("CREATE UNIQUE INDEX ON variant (key)")
    if name == "probe":
        script += "CREATE TEMP TABLE staging (LIKE tapline.event);\n"
    one.sql("CHECKPOINT")
    for path in files.paths:
        if name == "probe":
            script += (f"BEGIN; TRUNCATE staging; COPY staging FROM '{path}' (FORMAT binary); "
                       "INSERT INTO variant SELECT s.* FROM staging s WHERE NOT EXISTS "
                       "(SELECT FROM variant v WHERE v.key = s.key); COMMIT;\n")
        else:
            script += f"COPY variant FROM '{path}' (FORMAT binary);\n"
    if name == "tapline":
        script += "CREATE UNIQUE INDEX ON variant (unit, key);\n"
    seconds = measure.run_scripts(one, [script])
    rows = int(one.sql("SELECT count(*) FROM variant"))
    one.sql("DROP TABLE variant")
    return rows / seconds


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=ROWS)
    chosen = options.parse_args()
    bodies = daemon.temporary("designs")
    path = os.path.join(bodies, "bodies")
    try:
        events.write_bodies(path, events.recent(1, chosen.rows).lines(0, chosen.rows))
        with daemon.Fresh(os.path.abspath(chosen.binary)) as one:
            load.post(one.port, one.key, path)
            one.wait_until_stored(chosen.rows)
            if one.sql("SELECT count(DISTINCT key) FROM tapline.event") != str(chosen.rows):
                daemon.fail("an event was stored twice")
            ratios = {name: [] for name in NAMES}
            with measure.RowFiles(one, chosen.rows) as files:
                for _ in range(chosen.rounds):
                    rates = {name: variant(one, name, files) for name in NAMES}
                    document.log(" ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
                    for name in NAMES:
                        ratios[name].append(rates[name] / rates["limit"])
        print(document.heading(f"{document.times(chosen.rounds, 'round')} of {chosen.rows:,} rows"))
        print("\n| variant | of the limit, median | least | most |\n|---|---|---|---|")
        for name in NAMES:
            print(f"| {name} | {statistics.median(ratios[name]):.2f} "
                  f"| {min(ratios[name]):.2f} | {max(ratios[name]):.2f} |")
    finally:
        shutil.rmtree(bodies, ignore_errors=True)


if __name__ == "__main__":
    main()
