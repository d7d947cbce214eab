"""What is measured, each in one place: rates, the limit of the database, answers, freshness."""
import http.client
import os
import shutil
import subprocess
import tempfile
import threading
import time

from common import load
from common.daemon import (
    ENVIRONMENT, cpu_seconds, database_cpu_seconds, fail, memory_mb, psql, thread_cpu_seconds)

LIMIT_ROWS = 50_000
# `load.segment_rows_max`: a segment with as many rows is closed next.
SEGMENT_ROWS = 500_000


def wal_position(daemon):
    return int(daemon.sql("SELECT pg_current_wal_lsn() - '0/0'"))


def disk_bytes(daemon):
    """Tables, indexes, and the daemon's files of identities."""
    tables = int(daemon.sql(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE nspname = 'tapline' AND relkind = 'r'"))
    folder = os.path.join(daemon.directory, "identities")
    files = os.scandir(folder) if os.path.isdir(folder) else []
    return tables + sum(file.stat().st_size for file in files)


def stored(daemon, bodies, others=(), checkpoint=True):
    """Posts all bodies over 8 connections and waits until they are stored, and in the reports.

    The clock runs from the first byte to the moment the last event is in, and the segment is closed if
    that made it full. CPU and WAL are counted on
    until the segments that became full are closed, which goes on behind the load. `others` are
    more daemons on the same database that take bodies in turn. A checkpoint before makes each
    first change of a page carry the whole page into the WAL: the worst case.
    """
    daemons = [daemon, *others]
    daemon.settle()
    if checkpoint:
        daemon.sql("CHECKPOINT")
    postmaster = daemon.postmaster()
    verdicts = Verdicts(daemon)
    base = verdicts.count()
    threads = thread_cpu_seconds(daemon.pid)
    cpu = sum(cpu_seconds(one.pid) for one in daemons)
    backend, wal = database_cpu_seconds(postmaster), wal_position(daemon)
    before = time.monotonic()
    sent = load.post([one.port for one in daemons], daemon.key, bodies)
    events = sent["events"]
    stored_at = verdicts.wait(base + events)
    verdicts.close()
    memory = memory_mb(daemon.pid)
    daemon.settle()
    per_event = 1e6 / events
    now = thread_cpu_seconds(daemon.pid)
    return {
        "events": events,
        "stored": events / (stored_at - before),
        "daemon_us": (sum(cpu_seconds(one.pid) for one in daemons) - cpu) * per_event,
        "backend_us": (database_cpu_seconds(postmaster) - backend) * per_event,
        "generator_us": sent["cpu"] * per_event,
        "p50": sent["p50"],
        "p99": sent["p99"],
        "wal_bytes": (wal_position(daemon) - wal) / events,
        "rss": memory,
        "threads_us": {name: (now[name] - threads.get(name, 0)) * per_event for name in now},
    }


class Verdicts:
    """How many events of all daemons of a database have a verdict, asked over one session.

    The metrics of a daemon tell it of its own events, but each look at them costs half a millisecond:
    with four daemons that would be felt.
    """

    def __init__(self, daemon):
        self.session = subprocess.Popen(
            psql(daemon.socket), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=ENVIRONMENT)

    def count(self):
        return self._ask("SELECT coalesce(sum(stored + duplicate + conflict + dead_lettered), 0) "
                         "FROM tapline.spool")

    def _ask(self, statement):
        self.session.stdin.write(statement + ";\n")
        self.session.stdin.flush()
        return int(self.session.stdout.readline())

    def _closes(self):
        return self._ask("SELECT segment_rows FROM tapline.turn") >= SEGMENT_ROWS

    def wait(self, events, timeout=600):
        """Waits until there are `events`, and the open segment is not a full one; returns that moment."""
        deadline = time.monotonic() + timeout
        while self.count() < events or self._closes():
            if time.monotonic() > deadline:
                fail(f"{events:,} events were not stored within {timeout} s")
            time.sleep(0.02)
        return time.monotonic()

    def close(self):
        self.session.stdin.close()
        self.session.wait()


class RowFiles:
    """The rows that a daemon has stored last, as files of binary COPY that the server can read."""

    def __init__(self, daemon, rows):
        self.directory = tempfile.mkdtemp(prefix="tapline-rows-")
        os.chmod(self.directory, 0o777)
        self.rows, self.paths = rows, []
        daemon.sql("CREATE TABLE ordered AS SELECT * FROM tapline.event")
        for start in range(0, rows, LIMIT_ROWS):
            path = os.path.join(self.directory, f"{start}.bin")
            daemon.sql(
                f"SET synchronize_seqscans = off; COPY (SELECT * FROM ordered "
                f"OFFSET {start} LIMIT {LIMIT_ROWS}) TO '{path}' (FORMAT binary)")
            self.paths.append(path)
        daemon.sql("DROP TABLE ordered")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)


def run_scripts(daemon, scripts, database="tapline"):
    """Runs psql scripts at the same time, a session each; returns the seconds it took."""
    sessions = [subprocess.Popen(psql(daemon.socket, database), stdin=subprocess.PIPE, text=True,
                                 env=ENVIRONMENT) for _ in scripts]
    before = time.monotonic()
    for session, script in zip(sessions, scripts):
        session.stdin.write(script)
        session.stdin.close()
    if any([session.wait() for session in sessions]):
        fail("a psql session failed")
    return time.monotonic() - before


def limit(daemon, files, columns="tapline.event"):
    """Rows/s of COPY of the rows into a plain table without an index."""
    daemon.sql(f"CREATE TABLE plain (LIKE {columns}) WITH (autovacuum_enabled = false); CHECKPOINT")
    seconds = run_scripts(
        daemon, ["".join(f"COPY plain FROM '{path}' (FORMAT binary);\n" for path in files.paths)])
    rows = int(daemon.sql("SELECT count(*) FROM plain"))
    daemon.sql("DROP TABLE plain")
    return rows / seconds


def staged(daemon, files, sessions):
    """Rows/s of COPY into a staging table, then a sorted INSERT ... ON CONFLICT DO NOTHING.

    The rows are the limit's, parsed and with their key: the cheapest input this way can have.
    """
    daemon.sql("CREATE TABLE keyed (LIKE tapline.event) WITH (autovacuum_enabled = false); "
               "CREATE UNIQUE INDEX ON keyed (key); CHECKPOINT")
    scripts = []
    for number in range(sessions):
        script = "CREATE TEMP TABLE staging (LIKE tapline.event);\n"
        for path in files.paths[number::sessions]:
            script += (f"BEGIN; TRUNCATE staging; COPY staging FROM '{path}' (FORMAT binary); "
                       "INSERT INTO keyed SELECT * FROM staging ORDER BY key "
                       "ON CONFLICT DO NOTHING; COMMIT;\n")
        scripts.append(script)
    seconds = run_scripts(daemon, scripts)
    rows = int(daemon.sql("SELECT count(*) FROM keyed"))
    daemon.sql("DROP TABLE keyed")
    return rows / seconds


class Freshness:
    """Sends one event every 100 ms and looks every 25 ms which of them the report has.

    A thread of its own, beside a load. The events are of an app of their own, a campaign each, so
    one query of the report function sees all of them. The time runs from the answer to the end
    of the query that has the event.
    """

    def __init__(self, daemon):
        self.daemon, self.stopped = daemon, threading.Event()
        self.key = daemon.command("key", "create", "--app", "fresh").strip()
        self.answered, self.seen = {}, {}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        session = subprocess.Popen(
            psql(self.daemon.socket), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=ENVIRONMENT)
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port)
        number, next_at = 0, time.monotonic()
        deadline = None
        while True:
            now = time.monotonic()
            if self.stopped.is_set():
                deadline = deadline or now + 30
                if len(self.seen) == len(self.answered) or now > deadline:
                    break
            elif now >= next_at:
                next_at = now + 0.1
                event = (f'{{"type":"received","message_uid":"fresh-{number}","device_id":"d",'
                         f'"campaign_id":"fresh-{number}","occurred_at":{int(time.time())}}}')
                connection.request("POST", "/v1/events", event,
                                   {"Authorization": "Bearer " + self.key})
                if connection.getresponse().read().count(b'"accepted":1') != 1:
                    break
                self.answered[f"fresh-{number}"] = time.monotonic()
                number += 1
            session.stdin.write(
                "SELECT campaign_id FROM tapline.report('campaign', of_app => 'fresh') "
                "WHERE NOT is_total; SELECT '.';\n")
            session.stdin.flush()
            visible = []
            for line in session.stdout:
                if line.strip() == ".":
                    break
                visible.append(line.strip())
            now = time.monotonic()
            for campaign in visible:
                if campaign in self.answered:
                    self.seen.setdefault(campaign, now)
            time.sleep(0.025)
        session.stdin.close()
        session.wait()
        connection.close()

    def seconds(self):
        """Stops, and returns the sorted times; an event that never came is an error."""
        self.stopped.set()
        self.thread.join()
        if not self.answered or len(self.seen) != len(self.answered):
            fail(f"{len(self.answered) - len(self.seen)} of {len(self.answered)} events did not "
                 "come into the report")
        return sorted(self.seen[name] - at for name, at in self.answered.items())


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
