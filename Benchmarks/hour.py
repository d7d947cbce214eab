#!/usr/bin/env python3
"""An hour of outage of the database, in a few minutes: as many events as an ordinary hour has.

The events of `--hours` at `--ordinary` events a second come at `--rate` while the database is away, from
`tapline bench`, which logs each acknowledgement. Then the database comes back, and all of it is loaded
while events go on coming. At the end `tapline bench --verify` holds the database against both logs, laws
L1 to L7. Memory of the daemon is sampled all the time: what waits is on the disk, so it must not grow.
"""
import argparse
import os
import time

from common import daemon, document, outage
from common.document import log
from common.proof import Peak, Run

# Beyond what the daemon has when it begins; a batch and what reads ahead, docs/reliability.md.
GROWTH_MB_MAX = 64


def hour(binary, chosen):
    events = int(chosen.hours * 3600 * chosen.ordinary)
    rows = []
    with outage.Away(binary) as away:
        one = away.one
        away.stop()
        before = daemon.memory_mb(one.pid)
        log(f"{events:,} events at {chosen.rate:,}/s without the database")
        began = time.monotonic()
        bench, peak = Run(binary, one, events, chosen.rate, "outage"), Peak(one)
        early = 0.0
        while bench.running():
            peak.sample()
            if time.monotonic() - began < 10:
                early = peak.most
        sent = bench.finish()
        seconds = time.monotonic() - began
        metrics = one.metrics()
        spooled, size = metrics["tapline_events_spooled"], metrics["tapline_spool_unloaded_bytes"]
        if spooled < events:
            daemon.fail(f"{spooled:,.0f} of {events:,} events are in the spool")
        rows += [
            ("events that came without the database", f"{events:,}"),
            ("… in, s", f"{seconds:,.0f}"),
            ("… bodies that had to be tried again", f"{sent.get('retries', 0):,}"),
            ("spool then, MB", f"{size / 2**20:,.0f}"),
            ("memory of the daemon before, MB", f"{before:.0f}"),
            ("… the most in the first 10 s, MB", f"{early:.0f}"),
            ("… the most until the end, MB", f"{peak.most:.0f}"),
        ]
        if peak.most > early + GROWTH_MB_MAX:
            daemon.fail(f"memory grew from {early:.0f} to {peak.most:.0f} MB while events waited")
        base = one.decided()
        log("the database comes back")
        away.start()
        began, peak = time.monotonic(), Peak(one)
        more = Run(binary, one, max(chosen.rate * 5, 1000), chosen.rate, "after")
        while one.metrics()["tapline_events_spooled"] > chosen.rate and \
                time.monotonic() - began < 1800:
            peak.sample()
        drained = one.decided() - base
        seconds = time.monotonic() - began
        more.finish()
        one.wait_until_stored(base + events + max(chosen.rate * 5, 1000))
        rows += [
            ("until the spool was loaded, while events kept coming, s", f"{seconds:,.0f}"),
            ("… events/s", f"{drained / seconds:,.0f}"),
            ("… the most memory of the daemon, MB", f"{peak.most:.0f}"),
        ]
        for name, run in (("of the outage", bench), ("after it", more)):
            verdict = run.verify()
            rows.append((f"events {name}: acknowledged, stored, missing, doubled, altered", ", ".join(
                f"{verdict[field]:,}" for field in
                ("acknowledged", "stored", "missing", "doubled", "altered"))))
        away.one.require_balance()
    return events, rows


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--hours", type=float, default=1)
    options.add_argument("--ordinary", type=int, default=1000, help="events/s of an ordinary hour")
    options.add_argument("--rate", type=int, default=10_000, help="events/s of this run")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    events, rows = hour(os.path.abspath(chosen.binary), chosen)
    text = "\n\n".join([
        "## An hour without the database",
        f"As many events as {chosen.hours:g} h of {chosen.ordinary:,} events/s, {chosen.rate // chosen.ordinary} "
        "times as fast. What each line means: `Benchmarks/hour.py`.",
        document.heading(f"{events:,} events"),
        "\n".join(["| | |", "|---|---|", *[f"| {name} | {value} |" for name, value in rows]])])
    print(text)
    if chosen.write:
        document.write_section(chosen.write, "hour", text)


if __name__ == "__main__":
    main()
