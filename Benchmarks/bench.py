#!/usr/bin/env python3
"""Measures Tapline against the limit of its database, side by side in one run.

Each round starts a daemon with an embedded database in an empty directory and measures, in order:

  stored      events/s end to end: gzipped bodies of 1000 events over 8 connections, until every
              event is stored, deduplicated and in the report
  limit       rows/s of binary COPY of the very rows that were stored, from files on the server,
              into a plain table with the same columns and no index, 50 000 rows a transaction
  acks        durable acknowledged events/s in 1000-event bodies while the loader is held up
  requests    durable single-event requests/s over 100 connections, loader held up too
  steady      the same as stored, of as many events more: the daemon has its memory then
  latency     time to the answer at half of the stored rate, counted from when a body was due
  freshness   beside such a load: from an answer until the report has the event; to know it, the
              report is computed some 30 times a second, which takes a fifth of a core and more

Then, once: memory and spool while the database is down under load; in each round: the drain after
an outage while events keep coming, and one, two and four daemons on one database, in another order
in each round, which have loaded twice as many events as one load has before: what is compared is not how
long it takes to get memory.
A ratio is that of one round; the figure is the median over the rounds, the spread their extremes.
CPU, WAL and disk include the closing of the first segment, of 500 000 rows, in each round.
The load generator is common/load.c; what it costs is in the table, for it shares the cores.
"""
import argparse
import os
import shutil
import time

from common import calm, daemon, document, events, load, measure, outage
from common.document import log

DAEMONS = (1, 2, 4)

ROWS = [
    ("stored", "stored and in the report, events/s, 1000-event bodies, 8 connections", "{:,.0f}"),
    ("limit", "the limit: binary COPY of the same rows, rows/s", "{:,.0f}"),
    ("ratio", "**stored / limit** (target 0.40 or more)", "{:.2f}"),
    ("acks", "durable acks, events/s in 1000-event bodies, loader held", "{:,.0f}"),
    ("acks_ratio", "**durable acks / limit** (target 2 or more)", "{:.2f}"),
    ("requests", "single-event requests/s, 100 connections, loader held (target 20,000)", "{:,.0f}"),
    ("request_p50", "… answer p50, ms", "{:.1f}"),
    ("request_p99", "… answer p99, ms", "{:.1f}"),
    ("ack_p50", "answer to a 1000-event body at half the stored rate, p50, ms (target 3)", "{:.1f}"),
    ("ack_p99", "… p99, ms (target 25)", "{:.1f}"),
    ("probed_p50", "… beside who computes the report 30 times a second: p50, ms", "{:.1f}"),
    ("probed_p99", "… p99, ms", "{:.1f}"),
    ("fresh_p50", "from the answer to the report at half the stored rate, p50, s", "{:.2f}"),
    ("fresh_p99", "… p99, s (target 2)", "{:.2f}"),
    ("daemon_us", "CPU of the daemon, µs an event (target 2)", "{:.2f}"),
    ("http_us", "… of it the HTTP thread", "{:.2f}"),
    ("spool_us", "… the spool's committer", "{:.2f}"),
    ("loader_us", "… the loader", "{:.2f}"),
    ("reader_us", "… what reads the spool for it", "{:.2f}"),
    ("backend_us", "CPU of PostgreSQL, µs an event", "{:.2f}"),
    ("steady", "as many events more, stored and in the report, events/s", "{:,.0f}"),
    ("steady_us", "… CPU of the daemon, µs an event (target 2)", "{:.2f}"),
    ("steady_backend_us", "… CPU of PostgreSQL, µs an event", "{:.2f}"),
    ("generator_us", "CPU of the load generator, µs an event", "{:.2f}"),
    ("request_us", "CPU of the load generator, µs a single-event request", "{:.1f}"),
    ("wal_bytes", "WAL, bytes an event (target 600)", "{:,.0f}"),
    ("disk_bytes", "tables, indexes and identity files, bytes an event (target 450)", "{:,.0f}"),
    ("idle_rss", "memory of the daemon idle, MB (target 64)", "{:.0f}"),
    ("rss", "memory of the daemon after the load, MB", "{:.0f}"),
    ("drain", "drain after an outage while ingesting at half the stored rate, events/s", "{:,.0f}"),
    ("drain_ratio", "**drain / stored rate** (target 0.9 or more)", "{:.2f}"),
    ("daemons_1", "one daemon, a sixth of the events sent twice, events/s", "{:,.0f}"),
    ("daemons_2", "two daemons on one database, the same events", "{:,.0f}"),
    ("daemons_4", "four daemons", "{:,.0f}"),
    ("ratio_2", "**two daemons / one** (target 0.95 or more)", "{:.2f}"),
    ("ratio_4", "**four daemons / one** (target 0.95 or more)", "{:.2f}"),
    calm.ROW,
]


class Files:
    """The bodies of a run, made before any clock starts."""

    def __init__(self, directory, count):
        self.count, self.directory = count, directory
        stream = events.recent(1, count)
        self.loaded = self._write("loaded", stream.lines(0, count))
        self.held = self._write("held", stream.lines(count, count + count // 2))
        self.paced = self._write("paced", stream.lines(2 * count, 3 * count))
        self.probed = self._write("probed", stream.lines(3 * count, 4 * count))
        self.more = self._write("more", stream.lines(4 * count, 5 * count))
        singles = min(200_000, count)
        self.singles = self._write("singles", stream.lines(5 * count, 5 * count + singles), size=1)
        # Bodies that several daemons get: a sixth of the events comes twice, in another body. They take many
        # seconds: the first batch of a daemon and its last, for which it waits, are not to be felt, nor
        # whether one segment more becomes full.
        self.shared_count = count * 4
        lines = stream.lines(6 * count, 6 * count + self.shared_count)
        again = lines[: self.shared_count // 5]
        step = events.BODY_EVENTS
        mixed = []
        for start in range(0, len(lines), 5 * step):
            mixed += lines[start:start + 5 * step] + again[start // 5:start // 5 + step]
        self.shared_again = len(mixed) - len(lines)
        self.shared = self._write("shared", mixed)

    def _write(self, name, lines, size=events.BODY_EVENTS):
        path = os.path.join(self.directory, name)
        events.write_bodies(path, lines, size, plain=size == 1)
        return path


def round_of(binary, files, number):
    """The figures of a round, in three parts, each measured again if the CPU was not given."""
    # What comes later is not to have another machine than what comes first.
    counts = [DAEMONS[(number + place) % len(DAEMONS)] for place in range(len(DAEMONS))]
    figures = calm.measured("one daemon", lambda: alone(binary, files))
    half = figures["stored"] / 2
    lost = [figures["lost"]]
    for name, part in (
            ("an outage", lambda: {"drain": outage.drain(binary, files.loaded, files.paced, half)}),
            ("several daemons", lambda: {
                f"daemons_{count}": together(binary, files, count) for count in counts})):
        figures |= calm.measured(name, part)
        lost.append(figures["lost"])
    figures["lost"] = max(lost)
    figures["drain_ratio"] = figures["drain"] / figures["stored"]
    figures["ratio_2"] = figures["daemons_2"] / figures["daemons_1"]
    figures["ratio_4"] = figures["daemons_4"] / figures["daemons_1"]
    return figures


def alone(binary, files):
    with daemon.Fresh(binary) as one:
        idle = daemon.memory_mb(one.pid)
        figures = measure.stored(one, files.loaded)
        threads = figures.pop("threads_us")
        figures |= {"idle_rss": idle, "disk_bytes": measure.disk_bytes(one) / files.count}
        for name, thread in (("http", "MHD-single"), ("spool", "spool-commit"),
                             ("loader", "loader"), ("reader", "loader-read")):
            figures[name + "_us"] = threads.get(thread)
        with measure.RowFiles(one, files.count) as rows:
            figures["limit"] = measure.limit(one, rows)
        steady = measure.stored(one, files.more)
        figures |= {"steady": steady["stored"], "steady_us": steady["daemon_us"],
                    "steady_backend_us": steady["backend_us"]}
        with daemon.LoaderHeld(one):
            held = load.post(one.port, one.key, files.held)
            single = load.post(one.port, one.key, files.singles, connections=100, plain=True,
                               seconds=5)
        figures["acks"] = held["events"] / held["seconds"]
        figures["requests"] = single["events"] / single["seconds"]
        figures["request_us"] = single["cpu"] / single["events"] * 1e6
        figures |= {f"request_{p}": single[p] / 1000 for p in ("p50", "p99")}
        posted = 2 * files.count + held["events"] + single["events"]
        one.wait_until_stored(posted)
        bodies_a_second = figures["stored"] / 2 / events.BODY_EVENTS
        paced = load.post(one.port, one.key, files.paced, seconds=15, rate=bodies_a_second)
        posted += paced["events"]
        one.wait_until_stored(posted)
        fresh = measure.Freshness(one)
        probed = load.post(one.port, one.key, files.probed, seconds=15, rate=bodies_a_second)
        seconds = fresh.seconds()
        for name, answers in (("ack", paced), ("probed", probed)):
            figures |= {f"{name}_{p}": answers[p] / 1000 for p in ("p50", "p99")}
        figures["fresh_p50"] = measure.percentile(seconds, 0.50)
        figures["fresh_p99"] = measure.percentile(seconds, 0.99)
        one.wait_until_stored(posted + probed["events"] + len(seconds))
        one.require_balance()
    figures["ratio"] = figures["stored"] / figures["limit"]
    figures["acks_ratio"] = figures["acks"] / figures["limit"]
    return figures


def together(binary, files, count):
    """Events/s of `count` daemons on one database, each event stored once whoever got it.

    They have loaded other events before: a daemon that was just started gets its memory while it
    loads, and four of them get four times as much.
    """
    with daemon.Fresh(binary) as first:
        others = [daemon.Fresh(binary, database=first.conninfo) for _ in range(count - 1)]
        try:
            # So that each has its sessions, knows the key and what is stored, and sees the others.
            for one in (first, *others):
                one.warm_up()
            for warm in (files.loaded, files.more):
                measure.stored(first, warm, others)
            figures = measure.stored(first, files.shared, others)
            found = first.sql("SELECT count(*), count(DISTINCT key) FROM tapline.event")
            stored = 2 * files.count + files.shared_count + count
            if found != f"{stored}|{stored}":
                daemon.fail(f"{count} daemons stored {found} rows and keys of {stored:,} events")
            verdicts = [one.metrics() for one in (first, *others)]
            again = sum(m["tapline_events_duplicate_total"] for m in verdicts)
            if again != files.shared_again:
                daemon.fail(f"{count} daemons counted {again:,.0f} of {files.shared_again:,} repeats")
            failures = {name: value for m in verdicts for name, value in m.items()
                        if name.startswith("tapline_load_failures_total") and value}
            if failures:
                log(f"  {count} daemons had to try again: {failures}")
        finally:
            for one in others:
                one.__exit__()
        first.require_balance()
        return figures["stored"]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--events", type=int, default=600_000)
    options.add_argument("--outage-seconds", type=int, default=90)
    options.add_argument("--write", help="the document to write the section to")
    options.add_argument("--against", help="the document whose section is the baseline: exit code 1 "
                         "if a ratio is more than a tenth below it")
    chosen = options.parse_args()
    binary = os.path.abspath(chosen.binary)
    directory = daemon.temporary("bodies")
    began = time.monotonic()
    try:
        log(f"making the bodies of {chosen.events:,} events")
        files = Files(directory, chosen.events)
        table = document.Table(ROWS)
        for number in range(chosen.rounds):
            log(f"round {number + 1}")
            table.add(round_of(binary, files, number))
        depths = outage.memory(binary, files.loaded, table.median("stored") / 2,
                               chosen.outage_seconds)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text = "\n\n".join([
        "## On an empty database",
        "Every figure is of one run on one machine, each round on an empty embedded database with "
        "its default\nsettings; the machine is shared, so the ratios say more than the rates. What "
        "each line means:\n`Benchmarks/bench.py`. CPU is of a load that keeps both cores busy.",
        document.heading(f"{document.times(chosen.rounds, 'round')} of {chosen.events:,} events in "
                         f"{(time.monotonic() - began) / 60:.0f} min"),
        table.text(),
        outage.text(depths)])
    print(text)
    fallen = table.fallen(chosen.against, "bench") if chosen.against else []
    if chosen.write:
        document.write_section(chosen.write, "bench", text)
    if fallen:
        daemon.fail("lower than before: " + "; ".join(fallen))


if __name__ == "__main__":
    main()
