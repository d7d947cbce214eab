#!/usr/bin/env python3
"""Measures Tapline with many stored events, interleaved with an empty database.

The database is built once by the project's own loader, from events with random ids over 30 days in
order of time, and kept in --directory: a later run with the same number of events uses it again,
and an interrupted one goes on. 30 million take about 25 GB. A run adds its own events, a few per
cent of it.

Each round, with the same number of events and the same generator as `bench.py`:

  empty       events/s stored and in the report, in an empty database
  full        the same bodies in the large one, its files in the page cache
  repeats     80 % new events, 20 % repeats drawn evenly from all 30 days; the counts must be exact
  cold        the daemon and its PostgreSQL restarted, the files out of the page cache of this
              machine (its host may still have them), evicted once more before the load begins

and the time that reports take (the command, from its start to its end; over HTTP on a connection that
stays open), how long the daemon takes to start on cold files and to store its first event, its memory,
WAL and disk.
"""
import argparse
import json
import multiprocessing
import os
import random
import shutil
import time

from common import daemon, document, events, load, measure
from common.ask import Asker
from common.document import log

SEED, DAYS, CHUNK = 30, 30, 200_000
SETTINGS = ["spool.keep_bytes=64MiB"]
REPORTS = [
    ("report_all", "report: all campaigns (target 150)", []),
    ("report_one", "report: one campaign (target 30)", ["--campaign", "campaign-7"]),
    ("report_platform", "report: by platform", ["--by", "platform"]),
    ("report_both", "report: by campaign and platform", ["--by", "campaign,platform"]),
    ("report_day", "report: by day", ["--by", "day"]),
    ("report_week", "report: all campaigns, 7 days", ["--from", "7d"]),
]
ROWS = [
    ("empty", "empty database: stored, events/s", "{:,.0f}"),
    ("full", "large database: stored, events/s", "{:,.0f}"),
    ("full_ratio", "**large / empty** (target 0.80 or more)", "{:.2f}"),
    ("repeats", "large, 20 % repeats of up to 30 days: events/s", "{:,.0f}"),
    ("repeats_ratio", "**large with repeats / empty** (target 0.70 or more)", "{:.2f}"),
    ("cold", "large, restarted on cold files: events/s", "{:,.0f}"),
    ("cold_ratio", "**large and cold / empty** (target 0.60 or more)", "{:.2f}"),
    ("empty_backend_us", "CPU of PostgreSQL, empty, µs an event", "{:.2f}"),
    ("full_backend_us", "… large", "{:.2f}"),
    ("empty_daemon_us", "CPU of the daemon, empty, µs an event", "{:.2f}"),
    ("full_daemon_us", "… large", "{:.2f}"),
    ("empty_wal", "WAL, empty, bytes an event", "{:,.0f}"),
    ("full_wal", "WAL, large, bytes an event", "{:,.0f}"),
    ("disk", "tables, indexes and identity files, large, bytes an event (target 450)", "{:,.0f}"),
] + [row for name, text, _ in REPORTS for row in (
    (name, text + ", ms", "{:,.0f}"), (name + "_http", "… over HTTP, ms", "{:,.0f}"))] + [
    ("start", "start on cold files until it listens, s", "{:.2f}"),
    ("first", "… until its first event is stored, s", "{:.2f}"),
    ("start_rss", "memory of the daemon then, MB", "{:.0f}"),
    ("rss", "memory of the daemon after the loads, MB", "{:.0f}"),
]


class Base:
    """The large database and what is known of it, in scale.json beside its data."""

    def __init__(self, binary, directory, count, stream=events.Stream):
        os.makedirs(directory, exist_ok=True)
        # The user of the embedded database has to pass through.
        os.chmod(directory, os.stat(directory).st_mode | 0o011)
        self.binary, self.directory = binary, os.path.join(directory, "data")
        self.record = os.path.join(directory, "scale.json")
        if os.path.exists(self.record):
            with open(self.record) as file:
                self.known = json.load(file)
            if self.known["events"] != count:
                daemon.fail(f"{directory} has {self.known['events']:,} events, not {count:,}; "
                            "name another directory")
        else:
            self.known = {"events": count, "first_at": int(time.time()) - DAYS * 86400,
                          "loaded": 0, "runs": 0}
        self.stream = stream(SEED, self.known["first_at"], DAYS * 86400, count)

    def save(self):
        with open(self.record + ".new", "w") as file:
            json.dump(self.known, file)
        os.rename(self.record + ".new", self.record)

    def start(self):
        return daemon.Daemon(self.binary, self.directory, settings=SETTINGS)

    def ready(self):
        """Starts the daemon and waits until it has stored an event."""
        one = self.start()
        listening = time.monotonic() - one.started
        one.warm_up()
        return one, {"start": listening, "first": time.monotonic() - one.started,
                     "start_rss": daemon.memory_mb(one.pid)}

    def build(self):
        """Loads what is missing, in chunks; a chunk that was loaded in part is only repeated."""
        count, began = self.known["events"], time.monotonic()
        starts = list(range(self.known["loaded"], count, CHUNK))
        if not starts:
            return None
        work = daemon.temporary("scale")
        try:
            one, _ = self.ready()
            with one, multiprocessing.Pool(2) as makers:
                made = [(start, makers.apply_async(write_chunk, (
                    self.stream, start, min(start + CHUNK, count), work))) for start in starts[:3]]
                following = iter(starts[3:])
                base, posted = one.decided(), 0
                while made:
                    start, result = made.pop(0)
                    path = result.get()
                    posted += load.post(one.port, one.key, path, plain=True)["events"]
                    os.unlink(path)
                    if (after := next(following, None)) is not None:
                        made.append((after, makers.apply_async(write_chunk, (
                            self.stream, after, min(after + CHUNK, count), work))))
                    # What is acknowledged is durable, so the next start may count on it.
                    self.known["loaded"] = min(start + CHUNK, count)
                    self.save()
                    while one.decided() < base + posted - 5 * CHUNK:
                        time.sleep(0.2)
                    if start // CHUNK % 10 == 9:
                        log(f"  {self.known['loaded']:,} events, "
                            f"{posted / (time.monotonic() - began):,.0f} a second")
                one.wait_until_stored(base + posted, timeout=3600)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        log(f"built in {time.monotonic() - began:.0f} s")
        return time.monotonic() - began

    def next_run(self):
        """A number that no run on this database has had."""
        self.known["runs"] += 1
        self.save()
        return self.known["runs"]

    def files(self):
        """The files of PostgreSQL and the spool; those of a running database come and go."""
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    yield path

    def warm(self):
        """Reads the database's files into the page cache."""
        for path in self.files():
            if "/pg_wal/" not in path and "/spool/" not in path:
                with open(path, "rb", buffering=0) as file:
                    while file.read(1 << 20):
                        pass

    def evict(self):
        """Drops the files from the page cache of this machine."""
        os.sync()
        for path in self.files():
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def write_chunk(stream, start, stop, folder):
    path = os.path.join(folder, str(start))
    events.write_bodies(path, stream.lines(start, stop), plain=True)
    return path


def write_run(base, folder, count):
    """The bodies of one round; returns their paths and how many of the mixed ones are repeats."""
    # Each of the three has events of its own, that no run before has stored.
    seed = 1000 + 10 * base.next_run()
    paths = {}
    for number, name in enumerate(("new", "cold")):
        paths[name] = os.path.join(folder, name)
        events.write_bodies(paths[name], events.recent(seed + number, count).lines(0, count))
    repeats = min(count // 5, base.known["events"] // 2)
    luck = random.Random(seed)
    mixed = events.recent(seed + 2, count).lines(0, count - repeats)
    mixed += [base.stream.line(position)
              for position in luck.sample(range(base.known["events"]), repeats)]
    luck.shuffle(mixed)
    paths["mixed"] = os.path.join(folder, "mixed")
    events.write_bodies(paths["mixed"], mixed)
    return paths, repeats


def verdicts(one):
    metrics = one.metrics()
    return {name: metrics[f"tapline_events_{name}_total"] for name in ("stored", "duplicate")}


def report_times(one):
    asker, figures = Asker(one), {}
    for name, _, options in REPORTS:
        figures[name], figures[name + "_http"], _ = asker.time(options)
    return figures


def round_of(base, paths, repeats, count):
    figures = {}
    with daemon.Fresh(base.binary) as one:
        empty = measure.stored(one, paths["new"])
    base.warm()
    one, _ = base.ready()
    with one:
        full = measure.stored(one, paths["new"])
        before = verdicts(one)
        mixed = measure.stored(one, paths["mixed"])
        after = verdicts(one)
        expected = {"stored": count - repeats, "duplicate": repeats}
        got = {name: after[name] - before[name] for name in after}
        if got != expected:
            daemon.fail(f"of {count:,} events with {repeats:,} repeats the daemon made {got}")
        figures |= report_times(one)
        figures["disk"] = measure.disk_bytes(one) / (
            one.require_balance()["stored"])
        figures["rss"] = daemon.memory_mb(one.pid)
    base.evict()
    one, starting = base.ready()
    figures |= starting
    with one:
        one.sql("CHECKPOINT")
        base.evict()
        cold = measure.stored(one, paths["cold"])
    for name, run in (("empty", empty), ("full", full), ("repeats", mixed), ("cold", cold)):
        figures[name] = run["stored"]
        figures[name + "_ratio"] = run["stored"] / empty["stored"]
        figures |= {f"{name}_backend_us": run["backend_us"], f"{name}_daemon_us": run["daemon_us"],
                    f"{name}_wal": run["wal_bytes"]}
    return figures


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--directory", default=".build/bench/scale")
    options.add_argument("--events", type=int, default=30_000_000, help="of the large database")
    options.add_argument("--run-events", type=int, default=600_000, help="of each measurement")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--build-only", action="store_true")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    base = Base(os.path.abspath(chosen.binary), os.path.abspath(chosen.directory), chosen.events)
    base.build()
    if chosen.build_only:
        return
    table = document.Table(ROWS)
    for number in range(chosen.rounds):
        work = daemon.temporary("scale")
        try:
            log(f"round {number + 1}: making its bodies")
            paths, repeats = write_run(base, work, chosen.run_events)
            table.add(round_of(base, paths, repeats, chosen.run_events))
        finally:
            shutil.rmtree(work, ignore_errors=True)
    text = "\n\n".join([
        f"## With {chosen.events:,} stored events",
        "Random ids, over 30 days, 200 campaigns that all last as long. What each line means: "
        "`Benchmarks/scale.py`.\n`large` is that database, `empty` a new one in the same round; "
        "repeats are counted exactly in each round.",
        document.heading(f"{document.times(chosen.rounds, 'round')} of {chosen.run_events:,} events"),
        table.text()])
    print(text)
    if chosen.write:
        document.write_section(chosen.write, "scale", text)


if __name__ == "__main__":
    main()
