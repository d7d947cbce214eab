#!/usr/bin/env python3
"""Measures Tapline beside its peers, interleaved, on one PostgreSQL in one run.

  limit     binary COPY of the stored rows into a plain table without an index
  staged    psql: COPY of the same rows, in binary and with their key, into a staging table, then a
            sorted INSERT ... ON CONFLICT DO NOTHING; one session, and four at the same time
  peer      peers/server.py, the server a team would write in Python: two workers, orjson, asyncpg,
            COPY to staging, sorted ON CONFLICT DO NOTHING, committed before the answer
  tapline   the daemon; stored is until every event is stored, deduplicated and in the report

Tapline and the peer get the same bodies from the same generator. The time to an answer is taken
with 8 connections at full speed, and at one rate for both, half of what the peer stores. Single
events come over 100 connections for some seconds, with everything running. The database of the daemon
stands back behind it (nice 10), where the kernel heeds that; while a peer is measured it does not.
"""
import argparse
import contextlib
import os
import shutil

from common import calm, daemon, document, events, load, measure, peer
from common.document import log

ROWS = [
    ("limit", "limit: COPY, no index, rows/s", "{:,.0f}"),
    ("staged_1", "psql, staged, one session, rows/s", "{:,.0f}"),
    ("staged_4", "psql, staged, four sessions, rows/s", "{:,.0f}"),
    ("peer", "the Python server, events/s stored", "{:,.0f}"),
    ("tapline", "Tapline, events/s stored and in the report", "{:,.0f}"),
    ("over_staged_1", "Tapline / psql, one session", "{:.2f}"),
    ("over_staged_4", "Tapline / psql, four sessions", "{:.2f}"),
    ("over_peer", "**Tapline / the Python server** (target 2 or more)", "{:.2f}"),
    ("peer_single", "the Python server, single-event requests/s", "{:,.0f}"),
    ("tapline_single", "Tapline, single-event requests/s", "{:,.0f}"),
    ("over_single", "**Tapline / the Python server** (target 10 or more)", "{:.1f}"),
    ("rate", "rate of the next lines: half of the Python server's, events/s", "{:,.0f}"),
    ("peer_p50", "the Python server, answer p50, ms", "{:.1f}"),
    ("peer_p99", "the Python server, answer p99, ms", "{:.1f}"),
    ("tapline_p50", "Tapline, answer p50, ms", "{:.1f}"),
    ("tapline_p99", "Tapline, answer p99, ms", "{:.1f}"),
    ("under_p99", "**p99, Tapline / the Python server** (target 0.1 or less)", "{:.3f}"),
    ("peer_full_p50", "at full speed: the Python server, answer p50, ms", "{:.1f}"),
    ("peer_full_p99", "… p99, ms", "{:.1f}"),
    ("tapline_full_p50", "at full speed: Tapline, answer p50, ms", "{:.1f}"),
    ("tapline_full_p99", "… p99, ms", "{:.1f}"),
    ("under_full_p99", "p99 at full speed, Tapline / the Python server", "{:.3f}"),
    calm.ROW,
]


def round_of(binary, server, files, count):
    figures = {}
    with daemon.Fresh(binary) as one, peer.Peer(one, server) as other:
        ours = measure.stored(one, files["bodies"])
        figures["tapline"] = ours["stored"]
        figures |= {f"tapline_full_{p}": ours[p] / 1000 for p in ("p50", "p99")}
        one.sql("CHECKPOINT")
        stance = {"tapline": contextlib.nullcontext, "peer": one.database_for_others}
        with one.database_for_others():
            theirs = load.post(other.port, other.key, files["bodies"])
        figures["peer"] = theirs["events"] / theirs["seconds"]
        figures |= {f"peer_full_{p}": theirs[p] / 1000 for p in ("p50", "p99")}
        if other.rows() != count:
            daemon.fail(f"the peer stored {other.rows():,} of {count:,} events")
        with measure.RowFiles(one, count) as rows, one.database_for_others():
            figures["limit"] = measure.limit(one, rows)
            for sessions in (1, 4):
                figures[f"staged_{sessions}"] = measure.staged(one, rows, sessions)
        for name, server_port, key in (("tapline", one.port, one.key),
                                       ("peer", other.port, other.key)):
            with stance[name]():
                single = load.post(server_port, key, files["singles"], connections=100,
                                   plain=True, seconds=5)
            figures[name + "_single"] = single["events"] / single["seconds"]
            if name == "tapline":
                count += single["events"]
                one.wait_until_stored(count)
        figures["rate"] = figures["peer"] / 2
        for name, server_port, key in (("tapline", one.port, one.key),
                                       ("peer", other.port, other.key)):
            with stance[name]():
                paced = load.post(server_port, key, files["paced"], seconds=8,
                                  rate=figures["rate"] / events.BODY_EVENTS)
            figures |= {f"{name}_{p}": paced[p] / 1000 for p in ("p50", "p99")}
            if name == "tapline":
                one.wait_until_stored(count + paced["events"])
        one.require_balance()
    for name in ("staged_1", "staged_4", "peer"):
        figures["over_" + name] = figures["tapline"] / figures[name]
    figures["over_single"] = figures["tapline_single"] / figures["peer_single"]
    figures["under_p99"] = figures["tapline_p99"] / figures["peer_p99"]
    figures["under_full_p99"] = figures["tapline_full_p99"] / figures["peer_full_p99"]
    return figures


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--events", type=int, default=600_000)
    options.add_argument("--server", choices=peer.SERVERS, default="granian")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    directory = daemon.temporary("bodies")
    try:
        log(f"making the bodies of {chosen.events:,} events")
        stream, count = events.recent(11, chosen.events), chosen.events
        parts = {"bodies": (0, count, events.BODY_EVENTS),
                 "paced": (count, 2 * count, events.BODY_EVENTS),
                 "singles": (2 * count, 2 * count + 200_000, 1)}
        files = {}
        for name, (start, stop, size) in parts.items():
            files[name] = os.path.join(directory, name)
            events.write_bodies(files[name], stream.lines(start, stop), size, plain=size == 1)
        table = document.Table(ROWS)
        for number in range(chosen.rounds):
            log(f"round {number + 1}")
            table.add(calm.measured("the round", lambda: round_of(
                os.path.abspath(chosen.binary), chosen.server, files, count)))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text = "\n\n".join([
        "## Beside its peers",
        "What each line means: `Benchmarks/compare.py`. All of it in one run on one PostgreSQL "
        "with the settings of\nthe embedded one, at nice 0 for the peers; the Python server runs "
        f"under {chosen.server}.",
        document.heading(f"{document.times(chosen.rounds, 'round')} of {chosen.events:,} events"),
        table.text()])
    print(text)
    if chosen.write:
        document.write_section(chosen.write, "compare", text)


if __name__ == "__main__":
    main()
