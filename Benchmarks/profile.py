#!/usr/bin/env python3
"""Where the time and the bytes of an event go: the raw tables of docs/performance.md.

A daemon with an embedded database takes some events first, so that buffers and plans are there;
then a second load is profiled by perf (cpu-clock, daemon and all backends), pg_stat_statements
and pg_waldump. Time by samples is CPU; time of a statement includes its waits for the loader.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import tempfile

from common import daemon, document, events, load, measure
from common.document import log

FREQUENCY = 997
PRELOAD = "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.max = 1000\n"


def table(head, rows, forms):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(form.format(cell) for form, cell in zip(forms, row)) + " |"
              for row in rows]
    return "\n".join(lines)


def clean(text, length=88):
    text = re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
    return text if len(text) <= length else text[: length - 1] + "…"


class Perf:
    """perf record of some processes, and of the children and threads that they have later."""

    def __init__(self, pids):
        self.path = os.path.join(tempfile.mkdtemp(prefix="tapline-perf-"), "perf.data")
        self.process = subprocess.Popen(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", self.path,
             "-p", ",".join(map(str, pids))], stderr=subprocess.PIPE, text=True)

    def samples(self):
        """Samples by (thread id, its name, library, symbol)."""
        self.process.terminate()
        said = self.process.communicate()[1]
        text = subprocess.run(
            ["perf", "report", "-i", self.path, "--stdio", "--no-children", "-q", "-w", "0",
             "-F", "sample,pid,comm,dso,sym", "-t", "\t"], capture_output=True, text=True).stdout
        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)
        counts = collections.Counter()
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.split("\t")]
            if len(cells) == 5 and cells[0].isdigit():
                thread, symbol = int(cells[1].split(":")[0]), cells[4].split("] ", 1)[-1]
                symbol = "(no symbol)" if symbol.startswith("0x") else symbol
                counts[thread, cells[2], cells[3], symbol] += int(cells[0])
        if not counts:
            daemon.fail("perf has no samples (see kernel.perf_event_paranoid): " + said)
        return counts


def readable(symbols):
    """Swift's mangled names as they were written, where the toolchain is at hand."""
    if not shutil.which("swift"):
        return {}
    text = subprocess.run(["swift", "demangle", "--compact", "--simplified"],
                          input="\n".join(symbols), capture_output=True, text=True).stdout
    return dict(zip(symbols, text.splitlines()))


def restart_with_statements(binary, directory):
    with daemon.Daemon(binary, directory):
        data = os.path.join(directory, "postgres", "data")
    path = os.path.join(data, "local.conf")
    with open(path, "w") as file:
        file.write(PRELOAD)
    shutil.chown(path, os.stat(data).st_uid, os.stat(data).st_gid)
    one = daemon.Daemon(binary, directory)
    one.sql("CREATE EXTENSION pg_stat_statements SCHEMA public")
    return one


def cpu_tables(samples, roles, threads, count):
    """CPU by thread or backend, by library in it, and by function."""
    def micros(number):
        return number / FREQUENCY / count * 1e6

    def place(key):
        if key[0] in threads or key[1] in threads.values():
            return "daemon: " + key[1]
        return "PostgreSQL: " + roles.get(key[0], "a backend that has ended")

    places, libraries, functions = (collections.Counter() for _ in range(3))
    for key, number in samples.items():
        library = "kernel" if key[2].startswith("[") else os.path.basename(key[2])
        places[place(key)] += number
        libraries[place(key), library] += number
        functions[place(key), library, key[3]] += number
    total = sum(places.values())
    names = readable([name for _, _, name in functions])
    return (
        table(["thread or backend", "CPU, µs an event", "share"],
              [(name, micros(number), number / total) for name, number in places.most_common()]
              + [("all", micros(total), 1)], ["{}", "{:.2f}", "{:.0%}"]),
        table(["thread or backend", "in", "µs an event"],
              [(*key, micros(number)) for key, number in libraries.most_common()
               if micros(number) >= 0.02], ["{}", "{}", "{:.2f}"]),
        table(["thread or backend", "in", "function", "µs an event"],
              [(*key[:2], clean(names.get(key[2], key[2]), 70), micros(number))
               for key, number in functions.most_common(50)], ["{}", "{}", "`{}`", "{:.3f}"]))


def statements(one, count):
    rows = []
    for line in one.sql(
            "SELECT calls, rows, total_exec_time, wal_bytes, "
            "regexp_replace(query, '\\s+', ' ', 'g') "
            "FROM public.pg_stat_statements WHERE query !~ 'pg_stat_statements|CHECKPOINT' "
            "ORDER BY total_exec_time DESC LIMIT 15").splitlines():
        calls, changed, milliseconds, wal, query = line.split("|", 4)
        rows.append((clean(query), int(calls), int(changed), float(milliseconds) * 1000 / count,
                     int(wal) / count))
    return table(["statement", "calls", "rows", "µs an event", "WAL, bytes an event"], rows,
                 ["`{}`", "{:,}", "{:,}", "{:.2f}", "{:.1f}"])


def wal(one, start, end, count):
    program = one.sql("SELECT setting FROM pg_config WHERE name = 'BINDIR'") + "/pg_waldump"
    outcome = subprocess.run(
        [program, "--stats=record", "-p", os.path.join(one.directory, "postgres/data/pg_wal"),
         "-s", start, "-e", end], capture_output=True, text=True)
    rows = []
    for line in outcome.stdout.splitlines():
        found = re.match(r"(\w[\w/+ ]*?)" + r"\s+(\d+) \([^)]*\)" * 4, line)
        if found and int(found.group(5)) >= count:
            rows.append((found.group(1), int(found.group(2)), int(found.group(3)) / count,
                         int(found.group(4)) / count, int(found.group(5)) / count))
    if not rows:
        daemon.fail("pg_waldump: " + outcome.stdout[:500] + outcome.stderr)
    rows.sort(key=lambda row: -row[4])
    rows.append(("all", *(sum(row[column] for row in rows) for column in (1, 2, 3, 4))))
    return table(["record", "count", "record bytes an event", "page images an event", "together"],
                 rows, ["{}", "{:,}", "{:.1f}", "{:.1f}", "{:.1f}"])


def disk(one, stored):
    rows = []
    for line in one.sql("""
            SELECT coalesce(i.inhparent::regclass::text, c.oid::regclass::text) AS named,
                sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid))
            FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
            WHERE nspname = 'tapline' AND relkind = 'r'
            GROUP BY named ORDER BY sum(pg_total_relation_size(c.oid)) DESC""").splitlines():
        name, heap, indexes = line.split("|")
        if int(heap) + int(indexes) >= stored / 10:
            rows.append((name, int(heap) / stored, int(indexes) / stored))
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    return table(["table", "rows, bytes an event", "indexes, bytes an event"], rows,
                 ["{}", "{:.1f}", "{:.1f}"])


def profile(binary, first, second):
    parent = daemon.temporary("profile")
    try:
        with restart_with_statements(binary, os.path.join(parent, "data")) as one:
            measure.stored(one, first)
            one.sql("SELECT public.pg_stat_statements_reset()")
            start = one.sql("CHECKPOINT; SELECT pg_current_wal_lsn()")
            postmaster = one.postmaster()
            metrics = one.metrics()
            # Not the workers of autovacuum: perf refuses to start when one of them has gone.
            children = one.sql("SELECT pid FROM pg_stat_activity WHERE backend_type NOT LIKE "
                               "'autovacuum%' AND pid <> pg_backend_pid()").split()
            perf = Perf([one.pid, postmaster, *children])
            figures = measure.stored(one, second, checkpoint=False)
            threads = {int(thread): open(f"/proc/{one.pid}/task/{thread}/comm").read().strip()
                       for thread in os.listdir(f"/proc/{one.pid}/task")}
            roles = {int(pid): role for pid, role in (line.split("|", 1) for line in one.sql(
                "SELECT pid, CASE WHEN backend_type <> 'client backend' THEN backend_type "
                "ELSE application_name END FROM pg_stat_activity").splitlines())}
            roles[postmaster] = "postmaster"
            end = one.sql("SELECT pg_current_wal_lsn()")
            samples, count = perf.samples(), figures["events"]
            by_place, by_library, by_function = cpu_tables(samples, roles, threads, count)
            after = one.metrics()

            def change(name):
                return (after[name] - metrics[name]) / count

            parts = [
                f"{figures['stored']:,.0f} events/s stored and in the report under the profiler. "
                f"By the kernel's clocks: daemon {figures['daemon_us']:.2f}, PostgreSQL "
                f"{figures['backend_us']:.2f}, load generator {figures['generator_us']:.2f} µs an "
                f"event. Bytes an event: {change('tapline_body_inflated_bytes_total'):.0f} as NDJSON, "
                f"{change('tapline_http_body_bytes_total'):.0f} as sent.",
                "### CPU by thread and backend", by_place,
                "### CPU by library", by_library,
                "### CPU by function", by_function,
                "### Statements", statements(one, count),
                "### WAL, from a checkpoint on", wal(one, start, end, count),
                "### Disk",
                disk(one, int(one.sql("SELECT count(*) FROM tapline.event"))),
            ]
            return parts
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--events", type=int, default=500_000)
    options.add_argument("--before", type=int, default=600_000, help="events loaded beforehand")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    bodies = daemon.temporary("bodies")
    try:
        log(f"making the bodies of {chosen.before + chosen.events:,} events")
        stream = events.recent(21, chosen.before + chosen.events)
        paths = [os.path.join(bodies, name) for name in ("first", "second")]
        events.write_bodies(paths[0], stream.lines(0, chosen.before))
        events.write_bodies(paths[1], stream.lines(chosen.before, chosen.before + chosen.events))
        load.program()
        parts = profile(os.path.abspath(chosen.binary), *paths)
    finally:
        shutil.rmtree(bodies, ignore_errors=True)
    text = "\n\n".join([
        "## Raw tables",
        document.heading(f"{chosen.events:,} events after {chosen.before:,}"), *parts])
    print(text)
    if chosen.write:
        document.write_section(chosen.write, "profile", text)


if __name__ == "__main__":
    main()
