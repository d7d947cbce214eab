#!/usr/bin/env python3
"""A day at half load with a restart of PostgreSQL each hour: does the daemon use more and more?

`tapline bench` sends `--share` of what this machine stores (measured first), or what the disk has room
for, for `--hours`. Each `--restart-every` seconds PostgreSQL goes away: in turn it is stopped and started
again, and its postmaster gets `kill -9`. Memory, descriptors and threads of the daemon are sampled all
the time. At the end `tapline bench --verify` proves L1 to L7, and a line is fitted to the samples.

Memory has one part that grows on purpose: the filters by which repeats are found for ever, 16 bits for
each event in a closed segment. It is read from the database and shown beside; what must not grow is
the rest. The run fails if a fitted line, less twice its standard error, rises by more than a tenth and
by more than `GROWTH` over the run. Its beginning is left out, in which buffers and the tables of the
open segment find their size: the first tenth, and six minutes at least, or a third of a shorter run.
"""
import argparse
import os
import shutil
import time

from common import daemon, document, outage
from common.document import log
from common.proof import Run

# Events by which the full rate is told.
TRIAL = 300_000
# What an event takes on the disk: table, indexes, WAL, the spool that is kept, the log of the run.
BYTES_AN_EVENT = 1_000
GROWTH = {"rest": 16.0, "files": 4.0, "threads": 2.0}


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def line(points):
    """Slope of the least squares line through (x, y), and its standard error."""
    count = len(points)
    middle = sum(x for x, _ in points) / count
    height = sum(y for _, y in points) / count
    spread = sum((x - middle) ** 2 for x, _ in points)
    slope = sum((x - middle) * (y - height) for x, y in points) / spread
    rest = sum((y - height - slope * (x - middle)) ** 2 for x, y in points)
    return slope, (rest / (count - 2) / spread) ** 0.5


class Samples:
    """What the daemon uses, by time in hours."""

    NAMES = ["memory", "filters", "rest", "files", "threads"]

    def __init__(self, one):
        self.one, self.began, self.rows, self.filters = one, time.monotonic(), [], 0.0

    def take(self, has_database):
        if has_database:
            self.filters = float(self.one.sql(
                "SELECT coalesce(sum(length(filter)), 0) FROM tapline.segment")) / 2**20
        memory = daemon.memory_mb(self.one.pid)
        self.rows.append((
            (time.monotonic() - self.began) / 3600, memory, self.filters, memory - self.filters,
            files(self.one.pid), threads(self.one.pid)))

    def fitted(self, name):
        """Least, most, and slope an hour with its standard error, without the beginning."""
        column = 1 + self.NAMES.index(name)
        hours = self.rows[-1][0]
        begin = max(hours / 10, min(0.1, hours / 3))
        points = [(row[0], row[column]) for row in self.rows if row[0] >= begin]
        values = [value for _, value in points]
        return min(values), max(values), *line(points)

    def growing(self):
        """The names of what rises by more than may be."""
        hours = self.rows[-1][0]
        for name in GROWTH:
            least, _, slope, error = self.fitted(name)
            rise = (slope - 2 * error) * hours
            if rise > GROWTH[name] and rise > least / 10:
                yield f"{name} rose by {rise:.1f} in {hours:.2f} h"


def full_rate(binary, one):
    """Events a second that are stored, at full speed."""
    base, began = one.decided(), time.monotonic()
    Run(binary, one, TRIAL, 0, "trial").finish()
    one.wait_until_stored(base + TRIAL)
    return TRIAL / (time.monotonic() - began)


def day(binary, chosen):
    seconds = chosen.hours * 3600
    with outage.Away(binary) as away:
        one = away.one
        full = full_rate(binary, one)
        room = shutil.disk_usage(one.parent).free * 0.6 / BYTES_AN_EVENT / seconds
        rate = int(min(full * chosen.share, room, chosen.rate_max))
        log(f"{rate:,} events/s, {rate / full:.0%} of {full:,.0f}, for {chosen.hours:g} h")
        base = one.decided()
        run = Run(binary, one, int(rate * seconds), rate, "day", ["--resend", "5"])
        samples, restarts, kills = Samples(one), 0, 0
        next_restart, next_word = time.monotonic() + chosen.restart_every, 0.0
        while run.running():
            samples.take(has_database=True)
            hours, memory, filters, *_ = samples.rows[-1]
            if hours >= next_word:
                next_word = hours + chosen.hours / 40
                log(f"  {hours:7.3f} h  {memory:4.0f} MB, of it filters {filters:3.0f}; "
                    f"{restarts + kills} restarts")
            time.sleep(max(0.5, seconds / 2000))
            if time.monotonic() < next_restart or not run.running():
                continue
            next_restart += chosen.restart_every
            if restarts <= kills:
                restarts += 1
                away.stop()
                samples.take(has_database=False)
                away.start()
            else:
                kills += 1
                away.kill()
        sent = run.finish()
        took = time.monotonic() - samples.began
        one.wait_until_stored(base + sent["acknowledged"], 1800)
        verdict = run.verify(with_daemon=True, seconds=4 * 3600)
        one.require_balance()
    return rate, full, took, restarts, kills, sent, verdict, samples


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--hours", type=float, default=24)
    options.add_argument("--restart-every", type=float, default=3600, help="seconds")
    options.add_argument("--share", type=float, default=0.5, help="of what is stored at full speed")
    options.add_argument("--rate-max", type=float, default=1e9, help="events/s")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    rate, full, took, restarts, kills, sent, verdict, samples = day(
        os.path.abspath(chosen.binary), chosen)
    rows = [
        ("events a second", f"{rate:,}, {rate / full:.0%} of the {full:,.0f} stored at full speed"),
        ("for", f"{took / 3600:.2f} h"),
        ("PostgreSQL stopped and started again, killed", f"{restarts}, {kills} times"),
        ("events acknowledged, stored, missing, doubled, altered", ", ".join(
            f"{verdict[name]:,}" for name in
            ("acknowledged", "stored", "missing", "doubled", "altered"))),
        ("bodies tried again", f"{sent.get('retries', 0):,}"),
        ("laws that hold", ", ".join(
            law["law"] for law in verdict["laws"] if law["holds"])),
    ]
    for name, title in (
            ("memory", "memory, MB"), ("filters", "… of it filters, on purpose"),
            ("rest", "… and the rest"), ("files", "open files"), ("threads", "threads")):
        least, most, slope, error = samples.fitted(name)
        rows.append((title, f"{least:.0f} to {most:.0f}; slope {slope:+.2f} ± {2 * error:.2f} an hour"))
    text = "\n\n".join([
        "A day at half load with a restart of PostgreSQL each hour, or what was run of it: "
        "`make soak-day`.\nWhat each line means: `Benchmarks/day.py`.",
        document.heading(f"{document.times(len(samples.rows), 'sample')}"),
        "\n".join(["| | |", "|---|---|", *[f"| {name} | {value} |" for name, value in rows]])])
    print(text)
    growing = list(samples.growing())
    if growing:
        daemon.fail("; ".join(growing))
    if chosen.write:
        document.write_section(chosen.write, "day", text)


if __name__ == "__main__":
    main()
