#!/usr/bin/env python3
"""Measures Tapline against the limit of its database, side by side in one run.

Each round starts a daemon with an embedded database in an empty directory and measures, in order:

  stored      events/s end to end: gzipped bodies of 1000 events over 8 connections, until every
              event is stored, deduplicated and folded into its unit
  limit       rows/s of binary COPY of the very rows that were stored, from files on the server, into
              a plain table with the same columns and no index, one transaction per 50 000 rows
  acks        durable acknowledged events/s in 1000-event bodies while the loader is held up
  requests    durable single-event requests/s over 100 connections (wrk), loader held up too
  latency     time to the answer at half of the stored rate

The ratio is that of one round; the figure is the median over the rounds, the spread their extremes.
"""
import argparse
import gzip
import http.client
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid

BODY_EVENTS = 1000
CONNECTIONS = 8


def log(text):
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- events

def lines(count, seed, now):
    """`count` events of 300 to 400 bytes: one receipt a message, 8 % clicks, 5 % inbox opens."""
    rng = random.Random(seed)

    def uid():
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))

    made, recent = 0, []
    while made < count:
        roll = rng.random()
        if roll < 0.115 and recent:
            message, device, campaign = recent[rng.randrange(len(recent))]
            kind = "clicked" if roll < 0.07 else "inbox_open"
        else:
            message, device, campaign = uid(), uid(), rng.randrange(200)
            kind = "received"
            recent.append((message, device, campaign))
            if len(recent) > 20_000:
                recent = recent[10_000:]
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - rng.randrange(3600)))
        yield (
            f'{{"type":"{kind}","message_uid":"{message}","device_id":"{device}",'
            f'"event_uid":"{uid()}","campaign_id":"campaign-{campaign}",'
            f'"occurred_at":"{at}.{rng.randrange(1000):03d}Z","platform":"ios",'
            f'"app_version":"4.{campaign % 9}.1","properties":{{"screen":"home",'
            f'"session":{rng.randrange(10**9)},"experiment":"b{campaign % 3}"}}}}\n')
        made += 1


def bodies(count, seed, now):
    """Gzipped bodies of 1000 events, made before any clock starts."""
    made, part = [], []
    for line in lines(count, seed, now):
        part.append(line)
        if len(part) == BODY_EVENTS:
            made.append(gzip.compress("".join(part).encode(), 1))
            part = []
    return made


# ---------------------------------------------------------------- daemon

class Daemon:
    def __init__(self, binary, directory):
        self.binary, self.directory = binary, directory
        self.log = open(os.path.join(directory, "daemon.log"), "w+b")
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", directory],
            stdout=self.log, stderr=self.log)
        self.port = self.wait_for_port()
        self.key = subprocess.run(
            [binary, "key", "create", "--app", "bench", "--data-dir", directory],
            check=True, capture_output=True, text=True).stdout.strip()

    def wait_for_port(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(self.log.name) as text:
                found = re.search(r"127\.0\.0\.1:(\d+)", text.read())
            if found and int(found.group(1)) > 0:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        with open(self.log.name) as text:
            sys.exit("the daemon did not start:\n" + text.read())

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {
            name: float(value)
            for name, value in re.findall(r"^(\w+(?:\{[^}]*\})?) ([-+.\deE]+)$", text, re.M)}

    def sql(self, text):
        """Runs SQL over the embedded database's socket."""
        if not hasattr(self, "socket"):
            # A directory that the database's user may not enter has its socket elsewhere.
            record = os.path.join(self.directory, "postgres.socket-dir")
            self.socket = os.path.join(self.directory, "run")
            if os.path.exists(record):
                self.socket = open(record).read().strip()
        return subprocess.run(
            ["psql", "-h", self.socket, "-U", "tapline", "-d", "tapline", "-XAtq",
             "-v", "ON_ERROR_STOP=1", "-c", text],
            check=True, capture_output=True, text=True).stdout.strip()

    def stop(self):
        self.process.terminate()
        self.process.wait(120)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def backend_cpu_seconds():
    """Time of all PostgreSQL processes of this machine, ended children of the postmaster included."""
    total = 0.0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm:
                if comm.read().strip() != "postgres":
                    continue
            total += cpu_seconds(pid)
        except OSError:
            continue
    return total


def memory_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024


# ---------------------------------------------------------------- measurements

def post_all(daemon, made, rate=None):
    """Posts every body over 8 connections; returns the seconds it took and each answer's time.

    `rate` in events/s paces the bodies.
    """
    todo, latencies, failures = list(enumerate(made)), [], []
    todo.reverse()
    lock = threading.Lock()
    started = time.monotonic()

    def work():
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
        headers = {
            "Authorization": "Bearer " + daemon.key, "Content-Encoding": "gzip",
            "Content-Type": "application/x-ndjson"}
        mine = []
        while True:
            with lock:
                if not todo or failures:
                    break
                number, body = todo.pop()
            if rate:
                wait = started + number * BODY_EVENTS / rate - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
            before = time.monotonic()
            connection.request("POST", "/v1/events", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            mine.append(time.monotonic() - before)
            if answer.status != 200 or json.loads(text)["accepted"] != BODY_EVENTS:
                failures.append((answer.status, text[:300]))
        with lock:
            latencies.extend(mine)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"a body was refused: {failures[0]}")
    return time.monotonic() - started, latencies


def wait_until_stored(daemon, events, timeout=600):
    """Waits until `events` are stored and folded; returns when."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        metrics = daemon.metrics()
        if metrics["tapline_events_stored_total"] >= events:
            stored_at = time.monotonic()
            while daemon.sql(
                    "SELECT (SELECT batch FROM tapline.turn) - (SELECT batch FROM tapline.fold)"
            ) != "0":
                if time.monotonic() > deadline:
                    sys.exit("the fold did not catch up")
                time.sleep(0.02)
            return stored_at, time.monotonic()
        # Seldom, for each look at the metrics costs the daemon half a millisecond.
        time.sleep(0.05)
    sys.exit("the events were not stored in time")


def measure_stored(daemon, made):
    daemon.sql("CHECKPOINT")
    daemon_cpu, backend_cpu = cpu_seconds(daemon.process.pid), backend_cpu_seconds()
    wal = daemon.sql("SELECT pg_current_wal_lsn() - '0/0'")
    before = time.monotonic()
    base = daemon.metrics()["tapline_events_stored_total"]
    post_all(daemon, made)
    events = len(made) * BODY_EVENTS
    stored_at, folded_at = wait_until_stored(daemon, base + events)
    wal_bytes = int(daemon.sql("SELECT pg_current_wal_lsn() - '0/0'")) - int(wal)
    return {
        "stored": events / (stored_at - before),
        "folded": events / (folded_at - before),
        "daemon_us": (cpu_seconds(daemon.process.pid) - daemon_cpu) / events * 1e6,
        "backend_us": (backend_cpu_seconds() - backend_cpu) / events * 1e6,
        "wal_bytes": wal_bytes / events,
        "rss": memory_mb(daemon.process.pid),
    }


def measure_limit(daemon, rows):
    """Rows/s of COPY of the stored rows into a plain table."""
    batch = 50_000
    directory = tempfile.mkdtemp(prefix="tapline-limit-")
    os.chmod(directory, 0o777)
    try:
        parts = []
        daemon.sql("CREATE TABLE ordered AS SELECT * FROM tapline.event")
        for start in range(0, rows, batch):
            path = os.path.join(directory, f"{start}.bin")
            daemon.sql(
                f"SET synchronize_seqscans = off; COPY (SELECT * FROM ordered "
                f"OFFSET {start} LIMIT {batch}) TO '{path}' (FORMAT binary)")
            parts.append(path)
        daemon.sql("CREATE TABLE plain (LIKE tapline.event)")
        daemon.sql("ALTER TABLE plain SET (autovacuum_enabled = false)")
        daemon.sql("CHECKPOINT")
        script = "".join(f"COPY plain FROM '{path}' (FORMAT binary);\n" for path in parts)
        before = time.monotonic()
        subprocess.run(
            ["psql", "-h", daemon.socket, "-U", "tapline", "-d", "tapline", "-XAtq",
             "-v", "ON_ERROR_STOP=1"], input=script, text=True, check=True)
        seconds = time.monotonic() - before
        stored = int(daemon.sql("SELECT count(*) FROM plain"))
        daemon.sql("DROP TABLE plain")
        daemon.sql("DROP TABLE ordered")
        return stored / seconds
    finally:
        shutil.rmtree(directory)


class LoaderHeld:
    """Holds the row that every load transaction locks first."""

    def __init__(self, daemon):
        self.process = subprocess.Popen(
            ["psql", "-h", daemon.socket, "-U", "tapline", "-d", "tapline", "-XAtq"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.process.stdin.write("BEGIN;\nSELECT 'held' FROM tapline.turn FOR UPDATE;\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "held"

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


WRK = """
local n = 0
local seed = %d
request = function()
  n = n + 1
  local body = string.format('{"type":"clicked","message_uid":"w-%%d-%%d","device_id":"d-%%d",'
    .. '"campaign_id":"c1","platform":"ios","occurred_at":%d,"properties":{"screen":"home"}}\\n',
    seed, n, n)
  return wrk.format("POST", "/v1/events",
    {["Authorization"]="Bearer %s", ["Content-Type"]="application/x-ndjson"}, body)
end
done = function(summary, latency, requests)
  io.write(string.format("FIGURES %%d %%d %%d %%d %%d\\n", summary.requests, summary.duration,
    summary.errors.status + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


def measure_requests(daemon, seed, seconds=5):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK % (seed, int(time.time()), daemon.key))
        script.flush()
        output = subprocess.run(
            ["wrk", "-t1", "-c100", f"-d{seconds}s", "-s", script.name,
             f"http://127.0.0.1:{daemon.port}"], capture_output=True, text=True, check=True).stdout
    requests, duration, errors, p50, p99 = map(
        int, re.search(r"FIGURES (\d+) (\d+) (\d+) (\d+) (\d+)", output).groups())
    if errors:
        sys.exit(f"{errors} single-event requests failed\n{output}")
    return requests / duration * 1e6, p50 / 1000, p99 / 1000, requests


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def round_of(binary, number, events, made, paced):
    directory = tempfile.mkdtemp(prefix="tapline-bench-")
    try:
        daemon = Daemon(binary, directory)
        idle = memory_mb(daemon.process.pid)
        figures = measure_stored(daemon, made)
        figures["idle_rss"] = idle
        figures["disk_bytes"] = int(daemon.sql(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE nspname = 'tapline' AND relkind = 'r'")) / events
        figures["limit"] = measure_limit(daemon, events)
        with LoaderHeld(daemon):
            more = bodies(events // 2, 1000 + number, time.time())
            seconds, _ = post_all(daemon, more)
            figures["acks"] = len(more) * BODY_EVENTS / seconds
            figures["requests"], figures["request_p50"], figures["request_p99"], extra = \
                measure_requests(daemon, number)
        wait_until_stored(daemon, events + len(more) * BODY_EVENTS + extra)
        rate = figures["stored"] / 2
        _, latencies = post_all(daemon, paced, rate)
        figures["ack_p50"] = percentile(latencies, 0.50) * 1000
        figures["ack_p99"] = percentile(latencies, 0.99) * 1000
        wait_until_stored(
            daemon, events + (len(more) + len(paced)) * BODY_EVENTS + extra)
        check = subprocess.run(
            [binary, "check", "--data-dir", directory, "--format", "json"],
            capture_output=True, text=True)
        if check.returncode != 0:
            sys.exit("the books do not balance after the bench: " + check.stdout + check.stderr)
        daemon.stop()
        return figures
    finally:
        shutil.rmtree(directory, ignore_errors=True)


ROWS = [
    ("stored", "stored events/s, 1000-event bodies, 8 connections", "{:,.0f}"),
    ("folded", "… until in the units as well", "{:,.0f}"),
    ("limit", "the limit: binary COPY of the same rows, rows/s", "{:,.0f}"),
    ("ratio", "stored / limit", "{:.2f}"),
    ("folded_ratio", "… until in the units / limit", "{:.2f}"),
    ("acks", "durable acks, events/s in 1000-event bodies, loader held", "{:,.0f}"),
    ("acks_ratio", "durable acks / limit", "{:.2f}"),
    ("requests", "single-event requests/s, 100 connections, loader held", "{:,.0f}"),
    ("request_p50", "… answer p50, ms", "{:.1f}"),
    ("request_p99", "… answer p99, ms", "{:.1f}"),
    ("ack_p50", "answer to a 1000-event body at half the stored rate, p50, ms", "{:.1f}"),
    ("ack_p99", "… p99, ms", "{:.1f}"),
    ("daemon_us", "CPU of the daemon, µs an event", "{:.2f}"),
    ("backend_us", "CPU of PostgreSQL, µs an event", "{:.2f}"),
    ("wal_bytes", "WAL, bytes an event", "{:,.0f}"),
    ("disk_bytes", "tables and indexes, bytes an event", "{:,.0f}"),
    ("idle_rss", "memory of the daemon idle, MB", "{:.0f}"),
    ("rss", "memory of the daemon after the load, MB", "{:.0f}"),
]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--events", type=int, default=500_000)
    options.add_argument("--write", help="the document to write the table to")
    chosen = options.parse_args()
    binary = os.path.abspath(chosen.binary)
    log(f"making {chosen.events:,} events")
    made = bodies(chosen.events, 1, time.time())
    paced = bodies(chosen.events // 5, 2, time.time())
    rounds = []
    for number in range(chosen.rounds):
        figures = round_of(binary, number, chosen.events, made, paced)
        figures["ratio"] = figures["stored"] / figures["limit"]
        figures["folded_ratio"] = figures["folded"] / figures["limit"]
        figures["acks_ratio"] = figures["acks"] / figures["limit"]
        log(f"round {number + 1}: " + ", ".join(
            f"{name} {form.format(figures[name])}" for name, _, form in ROWS))
        rounds.append(figures)
    table = ["| figure | median | least | most |", "|---|---|---|---|"]
    for name, text, form in ROWS:
        values = [figures[name] for figures in rounds]
        table.append("| " + " | ".join(
            [text] + [form.format(f(values)) for f in (statistics.median, min, max)]) + " |")
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    memory = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read()).group(1))
    machine = (f"{os.cpu_count()} cores ({cpu.group(1) if cpu else platform.machine()}), "
               f"{memory // 2**20} GiB, Linux {platform.release()}")
    text = "\n".join([
        "# Benchmarks", "",
        "`make bench` prints and writes this table. Every figure is of one run on one machine, each",
        "round on an empty embedded database with its default settings; the machine is shared, so",
        "the ratios say more than the rates. What each line means: `Benchmarks/bench.py`. CPU is of",
        "a load that keeps both cores busy, the fold included.", "",
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {machine}; {chosen.rounds} rounds of "
        f"{chosen.events:,} events.", ""] + table) + "\n"
    print(text)
    if chosen.write:
        with open(chosen.write, "w") as document:
            document.write(text)


if __name__ == "__main__":
    main()
