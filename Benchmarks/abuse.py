#!/usr/bin/env python3
"""Measures what a polite client sees while others abuse the daemon, side by side in one run.

The polite client posts one event after the other over one connection. Each round measures it alone,
beside processes that only burn the CPU, beside each abuser, beside all of them, and beside the burners
again.

  idle    5000 connections that say nothing
  slow    heads and bodies that never end, and answers that nobody reads
  bomb    gzip of 64 MiB of blanks, over the limit of a body
  large   9 MB of events in a gzip body with a wrong checksum at its end: all of it is inflated
  deep    50 lines of 60 KB, each nested too deep
  cut     connections that end within a head or a body
  noise   512 random bytes a connection

Abusers are other machines; here they share the cores with the daemon. So they run as SCHED_IDLE: the
daemon, its database and the polite client take a core from them at once, and what they take from the
polite client, they take through the daemon. They still need the kernel, the caches and the memory of
this machine; so the normal of the polite client is its p99 beside as many processes of the same kind
that never talk to the daemon (`spin`), measured before and after in the same round. The same is done
with all of them at the priority of the daemon: there the scheduler decides most of it. Where the kernel
groups tasks by session and others work too, what the idle ones use is still taken from the share of
this session: `spin` is slower than alone then, so take figures on a quiet machine.

Each abuser has addresses of its own, as other machines have, a thousand connections an address: the
limits of the daemon are its defaults, but for the timeouts, which would end the idle ones too soon.
"""
import argparse
import gzip
import multiprocessing
import os
import random
import socket
import time

from common import daemon, document, measure
from common.document import log

IDLE = 5000
KINDS = ["idle", "slow", "bomb", "large", "deep", "cut", "noise"]

ROWS = [
    ("p50", "alone: p50, ms", "{:.2f}"),
    ("p99", "… p99, ms", "{:.2f}"),
    ("spin_p50", "**normal**: beside as many idle-priority processes that only burn the CPU: p50, ms", "{:.2f}"),
    ("spin_p99", "… p99, ms", "{:.2f}"),
    *[(kind, f"beside `{kind}`: p99, ms", "{:.2f}") for kind in KINDS],
    ("all_p50", "beside all of them: p50, ms", "{:.2f}"),
    ("all_p99", "… p99, ms", "{:.2f}"),
    ("ratio", "**p99 beside all of them / normal** (target 2 or less)", "{:.2f}"),
    ("worst", "… the worst of the single ones / normal", "{:.2f}"),
    ("alone_ratio", "… p99 beside all of them / alone", "{:.2f}"),
    ("http", "cores that the HTTP threads use beside all of them", "{:.2f}"),
    ("large_bodies", "… the threads for large bodies", "{:.2f}"),
    ("refused", "new connections a second that are refused then", "{:,.0f}"),
    ("equal_spin_p99", "at the daemon's own priority: p99 beside those that only burn the CPU, ms", "{:.2f}"),
    ("equal_all_p99", "… beside all abusers, ms", "{:.2f}"),
    ("equal_ratio", "… the one over the other", "{:.2f}"),
]


def event(name):
    return (f'{{"type":"clicked","message_uid":"{name}","device_id":"d","campaign_id":"c",'
            f'"event_uid":"{name}"}}')


def request(key, body, *headers):
    head = ["POST /v1/events HTTP/1.1", "Host: h", f"Authorization: Bearer {key}",
            f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def connect(port, address="127.0.0.1"):
    one = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def answer(one):
    """Reads one answer with its body; its status."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = one.recv(65536)
        if not more:
            raise OSError("closed before an answer")
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += one.recv(65536)
    return int(head.split()[1])


def gzipped(body):
    return gzip.compress(body, 1)


class Abuser:
    """What one kind does: `hold` once, then `act` over and over."""

    def __init__(self, kind, port, key):
        self.kind, self.port, self.key = kind, port, key
        self.address = f"127.0.1.{1 + KINDS.index(kind)}" if kind in KINDS else None
        self.held, self.random = [], random.Random(1)
        encoding = "Content-Encoding: gzip"
        if kind == "bomb":
            self.bytes = request(key, gzipped(b" " * (64 << 20)), encoding)
        elif kind == "large":
            lines = "\n".join(event(f"{number:032x}") for number in range(9000))
            pad = ',"properties":{"a":"' + "x" * 850 + '"}}'
            body = gzipped(lines.replace("}\n", pad + "\n").encode())
            self.bytes = request(key, body[:-8] + b"\0" * 8, encoding)
        elif kind == "deep":
            line = event("deep")[:-1] + ',"x":' + "[" * 60_000
            self.bytes = request(key, gzipped("\n".join([line] * 50).encode()), encoding)
        else:
            self.bytes = request("stranger", event("cut").encode())

    def hold(self):
        if self.kind == "idle":
            self.held = [connect(self.port, f"127.0.2.{1 + number // 1000}")
                         for number in range(IDLE)]
        elif self.kind == "slow":
            full = request(self.key, event("slow").encode())
            asked = b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"
            for number in range(200):
                one = connect(self.port, self.address)
                one.sendall([full[:40], full[:-3], full.split(b"{")[0], asked * 8][number % 4])
                self.held.append(one)

    def act(self):
        if self.kind in ("idle", "slow"):
            return time.sleep(0.1)
        if self.kind == "spin":
            return sum(range(100_000))
        with connect(self.port, self.address) as one:
            if self.kind == "cut":
                one.sendall(self.bytes[: self.random.randint(1, len(self.bytes))])
            elif self.kind == "noise":
                one.sendall(self.random.randbytes(512))
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
            else:
                one.sendall(self.bytes)
                answer(one)


def abuse(kind, port, key, stands_back, ready, stop, rounds):
    # In the session of the daemon: where the kernel groups tasks by session, it would weigh this one
    # against the daemon's as if its tasks were ordinary ones.
    if stands_back:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    one = Abuser(kind, port, key)
    one.hold()
    ready.set()
    count = 0
    while not stop.is_set():
        try:
            one.act()
        except OSError:
            pass
        count += 1
    rounds.value = count


class Abuse:
    """Abusers at work, a process each."""

    def __init__(self, kinds, one, stands_back):
        self.stop = multiprocessing.Event()
        self.rounds = []
        self.processes = []
        for kind in kinds:
            ready, rounds = multiprocessing.Event(), multiprocessing.Value("L", 0)
            self.rounds.append((kind, rounds))
            process = multiprocessing.Process(
                target=abuse, args=(kind, one.port, one.key, stands_back, ready, self.stop, rounds))
            process.start()
            self.processes.append(process)
            if not ready.wait(120):
                daemon.fail(f"the abuser {kind} did not start in 120 s")

    def __enter__(self):
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        self.stop.set()
        for process in self.processes:
            process.join(120)
            if process.is_alive():
                process.kill()


NAMES = iter(range(1 << 62))


def polite(one, count):
    """Milliseconds of each answer, sorted."""
    times, started = [], time.time_ns()
    with connect(one.port) as client:
        for _ in range(count):
            data = request(one.key, event(f"polite-{started}-{next(NAMES)}").encode())
            before = time.perf_counter()
            client.sendall(data)
            status = answer(client)
            times.append((time.perf_counter() - before) * 1000)
            if status != 200:
                daemon.fail(f"the polite client was answered {status}")
    return sorted(times)


def beside(one, kinds, chosen, stands_back=True):
    """What the polite client sees, and what the daemon does meanwhile."""
    deadline = time.monotonic() + 60
    while one.metrics()["tapline_http_connections"] > 10:
        if time.monotonic() > deadline:
            daemon.fail("the connections of the abusers before were not closed in 60 s")
        time.sleep(0.05)
    refused = one.refused_connections()
    with Abuse(kinds, one, stands_back) as others:
        threads, before = daemon.thread_cpu_seconds(one.pid), time.monotonic()
        times = polite(one, chosen.requests)
        seconds = time.monotonic() - before
        now = daemon.thread_cpu_seconds(one.pid)
    figures = {"p50": measure.percentile(times, 0.50), "p99": measure.percentile(times, 0.99),
               "refused": (one.refused_connections() - refused) / seconds}
    for name, thread in (("http", "MHD-single"), ("large_bodies", "large-bodies")):
        figures[name] = (now[thread] - threads.get(thread, 0)) / seconds
    rates = ", ".join(f"{kind} {value.value / seconds:,.0f}/s" for kind, value in others.rounds)
    log(f"    {'+'.join(kinds) or 'alone':40} p50 {figures['p50']:6.2f} p99 {figures['p99']:6.2f} ms  "
        f"{rates}, refused {figures['refused']:,.0f}/s")
    return figures


def round_of(one, chosen):
    spin = ["spin"] * len(KINDS)
    alone = beside(one, [], chosen)
    figures = {"p50": alone["p50"], "p99": alone["p99"]}
    normal = [beside(one, spin, chosen)]
    for kind in KINDS:
        figures[kind] = beside(one, [kind], chosen)["p99"]
    every = beside(one, KINDS, chosen)
    normal.append(beside(one, spin, chosen))
    figures["spin_p50"], figures["spin_p99"] = (
        sum(times[name] for times in normal) / 2 for name in ("p50", "p99"))
    figures["all_p50"], figures["all_p99"] = every["p50"], every["p99"]
    figures |= {name: every[name] for name in ("http", "large_bodies", "refused")}
    figures["ratio"] = figures["all_p99"] / figures["spin_p99"]
    figures["alone_ratio"] = figures["all_p99"] / figures["p99"]
    figures["worst"] = max(figures[kind] for kind in KINDS) / figures["spin_p99"]
    figures["equal_spin_p99"] = beside(one, spin, chosen, stands_back=False)["p99"]
    figures["equal_all_p99"] = beside(one, KINDS, chosen, stands_back=False)["p99"]
    figures["equal_ratio"] = figures["equal_all_p99"] / figures["equal_spin_p99"]
    return figures


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--requests", type=int, default=2000, help="of the polite client, each time")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    limits = ["http.header_timeout=5m", "http.body_timeout=5m", "http.idle_timeout=10m"]
    table = document.Table(ROWS)
    with daemon.Fresh(os.path.abspath(chosen.binary), settings=limits) as one:
        one.warm_up()
        polite(one, 500)
        for number in range(chosen.rounds):
            log(f"round {number + 1}")
            table.add(round_of(one, chosen))
        one.require_balance()
    text = "\n\n".join([
        "## Beside abusers",
        "A client that posts single events, one after the other, while others do what they should not. "
        "What each\nline means, and whom the abusers take the CPU from: `Benchmarks/abuse.py`.",
        document.heading(f"{document.times(chosen.rounds, 'round')} of {chosen.requests:,} requests"),
        table.text()])
    print(text)
    if chosen.write:
        document.write_section(chosen.write, "abuse", text)


if __name__ == "__main__":
    main()
