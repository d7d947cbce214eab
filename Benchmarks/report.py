#!/usr/bin/env python3
"""Measures reports over many stored events, and holds them against the aggregate over the events.

The database is that of `scale.py`: its own loader has made it. Each question is asked as the command,
from its start to its end, and over HTTP on a connection that stays open; the first answer fills caches
and does not count, the median of three does.

The aggregate is what one would write in SQL over the event table: units by GROUP BY, then counts. It is
right here because the events of this database are plain: every one has a device, and those of a message
name one campaign. Its numbers must be the report's, and the time that it takes is said beside it.
"""
import argparse
import http.client
import json
import os
import subprocess
import time
import urllib.parse

import scale
from common import daemon, document
from common.document import log

# Name, what it is, options, and the keys of the aggregate that it is held against.
QUESTIONS = [
    ("all campaigns (target 100)", [], "campaign_id"),
    ("one campaign (target 20)", ["--campaign", "campaign-7"], None),
    ("by day", ["--by", "day"], "day"),
    ("by platform", ["--by", "platform"], None),
    ("by campaign and day (target 1,000)", ["--by", "campaign,day"], "campaign_id, day"),
    ("by campaign and platform (target 1,000)", ["--by", "campaign,platform"], None),
    ("by hour and app_version (target 1,000)", ["--by", "hour,app_version"], None),
    ("by campaign and hour (target 1,000)", ["--by", "campaign,hour", "--top", "1000"], None),
    ("by type (target 1,000)", ["--by", "type"], "type"),
    ("by campaign and type (target 1,000)", ["--by", "campaign,type"], "campaign_id, type"),
    ("by day and type (target 1,000)", ["--by", "day,type"], None),
    ("by type and action (target 1,000)", ["--by", "type,action"], None),
    ("by category and platform (target 1,000)", ["--by", "category,platform"], None),
    ("by hour and topic (target 1,000)", ["--by", "hour,topic"], None),
    ("all campaigns, 7 days", ["--from", "7d"], None),
    ("all campaigns, as of the middle (target 2,000)", ["--as-of", "MIDDLE"], "campaign_id"),
    ("by day and platform, as of the middle (target 2,000)",
     ["--as-of", "MIDDLE", "--by", "day,platform"], None),
]
# For these all events are read, so they are asked once, after all others.
LONG = [
    ("all campaigns, with journeys", ["--journeys", "always"]),
    ("one campaign, with journeys", ["--journeys", "always", "--campaign", "campaign-7"]),
    ("all campaigns, by activity", ["--journeys", "never", "--by-activity"]),
]
AGGREGATE = """
    SELECT {keys}, count(*) FILTER (WHERE states & (15 << 3) <> 0),
        count(*) FILTER (WHERE states & ((1 << 9) + (1 << 8) + (1 << 12) + (1 << 20) + (15 << 3)) <> 0),
        count(*) FILTER (WHERE states & (1 << 20) <> 0), sum(clicks), sum(late)
    FROM (
        SELECT coalesce(min(campaign_id), '(unattributed)') AS campaign_id,
            to_char(coalesce(min(event_time) FILTER (WHERE type = 1), min(event_time))
                AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, {piece} AS type,
            bit_or((1 << type) | CASE WHEN type = 7 OR type = 8 AND opens_app THEN 1 << 20 ELSE 0 END)
                AS states,
            count(*) FILTER (WHERE type = 7 OR type = 8 AND opens_app) AS clicks,
            count(*) FILTER (WHERE received_at - event_time > interval '24 hours') AS late
        FROM tapline.event WHERE message_uid IS NOT NULL AND batch <= {batch}
        GROUP BY unit, {piece}) u
    GROUP BY {keys}
"""
COUNTS = ("observed", "delivered", "clicked", "clicks_total", "late")


def command(one, options):
    before = time.monotonic()
    answer = subprocess.run(
        [one.binary, "report", "--data-dir", one.directory, "--format", "json", *options],
        check=True, stdout=subprocess.PIPE, env=daemon.ENVIRONMENT).stdout
    return (time.monotonic() - before) * 1000, json.loads(answer)


def over_http(connection, key, options):
    names = [name.removeprefix("--") for name in options[::2]]
    query = urllib.parse.urlencode(list(zip(names, options[1::2])) + [("journeys", "never")])
    before = time.monotonic()
    connection.request("GET", "/v1/reports/campaigns?" + query,
                       headers={"Authorization": "Bearer " + key})
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        daemon.fail(f"GET /v1/reports/campaigns?{query}: {response.status} {body[:300]}")
    return (time.monotonic() - before) * 1000, json.loads(body)


def median_of(ask):
    times = [ask()[0] for _ in range(4)][1:]
    return sorted(times)[len(times) // 2]


def hold(one, text, report, keys, batch):
    """Fails if the aggregate says otherwise; returns how long it took, in milliseconds."""
    # Rows by type count what the events of a unit say, type by type.
    piece = ("(SELECT name FROM tapline.event_type WHERE code = type)" if "type" in keys
             else "NULL::text")
    before = time.monotonic()
    lines = one.sql("SET work_mem = '1GB'; SET jit = off;"
                    + AGGREGATE.format(keys=keys, batch=batch, piece=piece)).splitlines()
    took = (time.monotonic() - before) * 1000
    places = len(keys.split(","))
    expected = {}
    for line in lines:
        fields = line.split("|")
        expected[tuple(fields[:places])] = [int(value) for value in fields[places:]]
    found = {tuple(row[key.strip()] for key in keys.split(",")): [row[name] for name in COUNTS]
             for row in report["campaigns"]}
    if found != expected:
        wrong = [key for key in found.keys() | expected.keys()
                 if found.get(key) != expected.get(key)]
        daemon.fail(f"{text}: {len(wrong)} rows differ, for example {wrong[0]}: "
                    f"{found.get(wrong[0])}, the events say {expected.get(wrong[0])}")
    return took


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--directory", default=".build/bench/report")
    options.add_argument("--events", type=int, default=10_000_000, help="of the database")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    base = scale.Base(os.path.abspath(chosen.binary), os.path.abspath(chosen.directory),
                      chosen.events)
    base.build()
    base.warm()
    one, _ = base.ready()
    lines = ["| report | the command, ms | over HTTP, ms | aggregate over the events, ms | rows, the same |",
             "|---|---|---|---|---|"]
    with one:
        newest, middle, past = one.sql(
            "SELECT t.batch, b.batch, to_char(b.stored_at AT TIME ZONE 'UTC', "
            "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
            "FROM tapline.turn t JOIN tapline.batch b ON b.batch = t.batch / 2").strip().split("|")
        key = one.command("key", "create", "--app", "bench", "--role", "read").strip()
        for text, words, keys in QUESTIONS:
            # The server closes what has been idle.
            connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=600)
            is_past = "MIDDLE" in words
            words = [past if word == "MIDDLE" else word for word in words]
            log(text)
            fast = [*words, "--journeys", "never"]
            took = median_of(lambda: command(one, fast))
            connection.connect()
            served = median_of(lambda: over_http(connection, key, words))
            connection.close()
            slow, verdict = "", ""
            if keys:
                _, report = command(one, fast)
                slow = f"{hold(one, text, report, keys, middle if is_past else newest):,.0f}"
                verdict = f"{len(report['campaigns']):,}"
            lines.append(f"| {text} | {took:,.0f} | {served:,.0f} | {slow} | {verdict} |")
        for text, words in LONG:
            log(text)
            took, _ = command(one, words)
            lines.append(f"| {text}, once | {took:,.0f} |  |  |  |")
    section = "\n\n".join([
        f"## Reports over {chosen.events:,} stored events",
        "What each line means: `Benchmarks/report.py`. The aggregate is plain SQL over the event table; "
        "where it\nis given, its five counts (" + ", ".join(COUNTS) + ") were the report's, row by row.",
        document.heading("medians of 3"), "\n".join(lines)])
    print(section)
    if chosen.write:
        document.write_section(chosen.write, "report", section)


if __name__ == "__main__":
    main()
