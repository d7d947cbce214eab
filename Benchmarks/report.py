#!/usr/bin/env python3
"""Measures reports over many stored events, and holds them against the aggregate over the events.

The database is that of `scale.py`: its own loader has made it. With --wide its events have values of every
dimension (`events.Wide`); else those of seven have none. Each question is asked as the command, from its
start to its end, and over HTTP on a connection that stays open; the first answer fills caches and does not
count, the median of three does. Every pair of dimensions is asked so over HTTP, but once.

The aggregate is what one would write in SQL over the event table: pieces of units by GROUP BY, once, then
counts of these for each question (`Aggregate`). It is right here because the events of this database are
plain: every one has a device, those of a message name one campaign and say the same of each dimension, none
is of a test or silent. Its counts, rates and totals must be the report's, by the command and over HTTP, for
every question; of the pairs for all in a small database, for each dimension in a large one. All differences
fail the run.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import time

import scale
from common import daemon, document, events
from common.ask import Asker, never
from common.document import log

# Name, what it is, and options.
QUESTIONS = [
    ("all campaigns (target 100)", []),
    ("one campaign (target 20)", ["--campaign", "campaign-7"]),
    ("by day", ["--by", "day"]),
    ("by platform", ["--by", "platform"]),
    ("by campaign and day (target 1,000)", ["--by", "campaign,day"]),
    ("by campaign and platform (target 1,000)", ["--by", "campaign,platform"]),
    ("by hour and app_version (target 1,000)", ["--by", "hour,app_version"]),
    ("by campaign and hour (target 1,000)", ["--by", "campaign,hour", "--top", "1000"]),
    ("by type (target 1,000)", ["--by", "type"]),
    ("by campaign and type (target 1,000)", ["--by", "campaign,type"]),
    ("by day and type (target 1,000)", ["--by", "day,type"]),
    ("by type and action (target 1,000)", ["--by", "type,action"]),
    ("by category and platform (target 1,000)", ["--by", "category,platform"]),
    ("by hour and topic (target 1,000)", ["--by", "hour,topic"]),
    ("all campaigns, 7 days", ["--from", "WEEK"]),
    ("all campaigns, as of the middle (target 2,000)", ["--as-of", "MIDDLE"]),
    ("by day and platform, as of the middle (target 2,000)",
     ["--as-of", "MIDDLE", "--by", "day,platform"]),
]
# For these events are read, so they are asked once, after all others.
LONG = [
    ("all campaigns, with journeys", ["--journeys", "always"]),
    ("one campaign, with journeys", ["--journeys", "always", "--campaign", "campaign-7"]),
    ("all campaigns, by activity", ["--by-activity"]),
]
PAIR_TARGET = 1000
# A pair is held against the aggregate in a database of so many events, else if no pair before had one of
# its dimensions.
ALL_PAIRS_MAX = 2_000_000


class Aggregate:
    """Counts in plain SQL, of the events up to a batch; none of it is the product's but the table.

    Table `piece` has a row for each unit (message and device), type and button: what happened is in bits
    of `said`, 1 << type, and 1 << 20 for a click: type 7, or a button (type 8) that opens the app.
    """
    # Of the events of a unit, which say the same.
    OF_UNIT = {
        "campaign": "campaign_id", "platform": "platform", "app_version": "app_version",
        "os_version": "os_version", "locale": "locale", "country": "country", "provider": "provider",
        "category": "category_id", "push_group": "properties::json ->> 'push_group'",
        "topic": "properties::json ->> 'topic'"}
    # Of each event; a unit is in the row of each.
    OF_EVENT = {
        "type": "(SELECT name FROM tapline.event_type WHERE code = e.type)", "action": "action_id"}
    # Of when a unit was first seen, or of each event.
    OF_TIME = {"day": "'YYYY-MM-DD'", "hour": "'YYYY-MM-DD\"T\"HH24:00\"+00:00\"'"}
    DIMENSIONS = [*OF_UNIT, *OF_TIME, *OF_EVENT]

    CLICK = "type = 7 OR type = 8 AND opens_app"
    OBSERVED, CLICKED, ACTED, DISMISSED, INBOX = "15 << 3", "1 << 20", "1 << 8", "1 << 9", "1 << 12"
    DELIVERED = f"({OBSERVED}) | ({CLICKED}) | ({ACTED}) | ({DISMISSED}) | ({INBOX})"
    ENGAGED = f"({CLICKED}) | ({ACTED}) | ({INBOX}) | (1 << 6)"

    @staticmethod
    def units(*conditions):
        said = " AND ".join(
            f"said & ({bits}) {'<>' if has else '='} 0" for has, bits in conditions)
        return f"count(*) FILTER (WHERE {said})"

    # `sent`, and what hangs on it, is unknown: no event of this database is one.
    COUNTS = {
        "sent": "NULL", "accepted": "NULL", "clicks_without_send": "NULL",
        "failed": units((True, "1 << 2")), "observed": units((True, OBSERVED)),
        "delivered": units((True, DELIVERED)),
        "implied": units((True, DELIVERED), (False, OBSERVED)),
        "clicked": units((True, CLICKED)), "clicks_total": "sum(clicks)",
        "actions": units((True, ACTED)), "dismissed": units((True, DISMISSED)),
        "inbox_opened": units((True, INBOX)), "engaged": units((True, ENGAGED)),
        "failed_but_clicked": units((True, "1 << 2"), (True, CLICKED)),
        "late": "sum(late)", "test_excluded": "0",
        "dismissed_only": units((True, DISMISSED), (False, CLICKED))}
    # Numerator and denominator, of COUNTS.
    RATES = {
        "ctr_delivered": ("clicked", "delivered"), "engagement_rate": ("engaged", "delivered"),
        "dismiss_rate": ("dismissed_only", "delivered")}
    # Where devices were looked at; as in the report, null where no unit has one.
    OF_JOURNEYS = {
        "clicks_before_receipts": "count(*) FILTER (WHERE opened < 0)",
        **{f"p{percent}": f"percentile_cont(0.{percent}) WITHIN GROUP (ORDER BY opened) "
                          "FILTER (WHERE opened >= 0)" for percent in (50, 90, 99)}}

    def __init__(self, one, batch):
        self.one, self.batch = one, batch
        self.schema = f"aggregate_{batch}"
        self.seconds = 0

    def __enter__(self):
        """Makes the pieces, and the units of these."""
        before = time.monotonic()
        of_unit = ", ".join(f"min({value}) AS {name}" for name, value in self.OF_UNIT.items())
        of_event = ", ".join(f"{value} AS {name}" for name, value in self.OF_EVENT.items())
        again = ", ".join(f"min({name}) AS {name}" for name in self.OF_UNIT)
        self.one.sql(f"""
            DROP SCHEMA IF EXISTS {self.schema} CASCADE; CREATE SCHEMA {self.schema};
            SET work_mem = '1GB'; SET jit = off;
            CREATE UNLOGGED TABLE {self.schema}.piece AS
            SELECT unit, {of_event}, {of_unit},
                min(event_time) AS seen_at, min(event_time) FILTER (WHERE type = 1) AS sent_at,
                bit_or((1 << type) | CASE WHEN {self.CLICK} THEN {self.CLICKED} ELSE 0 END) AS said,
                count(*) FILTER (WHERE {self.CLICK}) AS clicks,
                count(*) FILTER (WHERE received_at - event_time > interval '24 hours') AS late,
                min(occurred_at) FILTER (WHERE {self.CLICK}) AS clicked_at,
                min(occurred_at) FILTER (WHERE (1 << type) & ({self.OBSERVED}) <> 0) AS observed_at
            FROM tapline.event e WHERE message_uid IS NOT NULL AND batch <= {self.batch}
            GROUP BY unit, type, action_id;
            CREATE UNLOGGED TABLE {self.schema}.unit AS
            SELECT unit, {again}, coalesce(min(sent_at), min(seen_at)) AS at, bit_or(said) AS said,
                sum(clicks)::bigint AS clicks, sum(late)::bigint AS late,
                extract(epoch FROM min(clicked_at) - min(observed_at))::float8 AS opened
            FROM {self.schema}.piece GROUP BY unit;
            ANALYZE {self.schema}.unit""")
        self.seconds = time.monotonic() - before
        log(f"  the aggregate's units in {self.seconds:.0f} s")
        return self

    def __exit__(self, *_):
        self.one.sql(f"DROP SCHEMA {self.schema} CASCADE")

    def rows(self, words):
        """What a report with these options has to say: rows by their keys, and the totals."""
        options = dict(zip(words[::2], words[1::2]))
        keys = options.get("--by", "campaign").split(",")
        has_journeys = options.get("--journeys") == "always"
        counts = self.COUNTS | (self.OF_JOURNEYS if has_journeys else {})
        where = ["true"]
        if "--campaign" in options:
            where.append(f"campaign = '{options['--campaign']}'")
        if "--from" in options:
            where.append(f"at >= '{options['--from']}'")
        units = f"(SELECT * FROM {self.schema}.unit WHERE {' AND '.join(where)}) u"
        columns = [f"coalesce({key}, '(unattributed)')" if key == "campaign"
                   else f"to_char(at AT TIME ZONE 'UTC', {self.OF_TIME[key]})"
                   if key in self.OF_TIME else key for key in keys]
        of_event = ", ".join(key for key in keys if key in self.OF_EVENT)
        pieces = units if not of_event else f"""
            (SELECT unit, {of_event}, bit_or(said) AS said, sum(clicks) AS clicks, sum(late) AS late
             FROM {self.schema}.piece GROUP BY unit, {of_event}) p
            JOIN (SELECT unit, at, {', '.join(self.OF_UNIT)} FROM {units}) u USING (unit)"""
        values = "json_build_object(" + ", ".join(
            f"'{name}', {value}" for name, value in counts.items()) + ")"
        texts = "json_build_array(" + ", ".join(f"k{place}" for place in range(len(keys))) + ")"
        named = ", ".join(f"{column} AS k{place}" for place, column in enumerate(columns))
        settings = "SET work_mem = '1GB'; SET jit = off; "
        lines = self.one.sql(
            f"{settings}SELECT json_build_array({texts}, {values}) FROM (SELECT *, {named} "
            f"FROM {pieces}) x GROUP BY " + ", ".join(f"k{place}" for place in range(len(keys))))
        totals = self.one.sql(f"{settings}SELECT {values} FROM {units}")
        rows = map(json.loads, lines.splitlines())
        return keys, {tuple(key): row for key, row in rows}, json.loads(totals)

    def hold(self, text, words, report):
        """Fails if it says something else than the report; returns how long it took, in milliseconds."""
        before = time.monotonic()
        keys, expected, totals = self.rows(words)
        took = (time.monotonic() - before) * 1000
        if "--top" in words:
            # By time, rows are in the order of their keys.
            top = int(words[words.index("--top") + 1])
            order = sorted(expected, key=lambda key: [(value is None, value) for value in key])
            expected = {key: expected[key] for key in order[:top]}
        names = ["campaign_id" if key == "campaign" else key for key in keys]
        found = {tuple(row[name] for name in names): row for row in report["campaigns"]}
        differing = [key for key in found.keys() | expected.keys()
                     if key not in found or self.differ(expected.get(key), found[key])]
        if wrong := self.differ(totals, report["totals"]):
            daemon.fail(f"{text}: totals: {wrong}")
        if differing:
            key = differing[0]
            daemon.fail(f"{text}: {len(differing)} rows differ, for example {key}: "
                        + (self.differ(expected.get(key), found[key]) if key in found
                           else f"missing, the events say {expected[key]}"))
        return took

    def differ(self, expected, found):
        """The first difference in words, or nothing."""
        if expected is None:
            return "not expected"
        pairs = [(name, value, found.get(name)) for name, value in expected.items()
                 if name not in ("dismissed_only", "p50", "p90", "p99")]
        # Sums of nothing are null in SQL.
        pairs = [(name, 0 if name in ("clicks_total", "late") and value is None else value, other)
                 for name, value, other in pairs]
        for name, (part, whole) in self.RATES.items():
            part, whole = expected[part], expected[whole]
            pairs += [(f"{name}'s {side}", value, found[name][side])
                      for side, value in (("numerator", part), ("denominator", whole),
                                          ("value", part / whole if whole else None))]
        if "p50" in expected:
            percentiles = {name: expected[name] for name in ("p50", "p90", "p99")}
            times = found["time_to_open"] or dict.fromkeys(percentiles)
            pairs += [(name, value, times[name]) for name, value in percentiles.items()]
        for name, value, other in pairs:
            both_numbers = isinstance(value, (int, float)) and isinstance(other, (int, float))
            if abs(value - other) > 1e-6 if both_numbers else value != other:
                return f"{name} is {other}, the events say {value}"
        return None


def floor(one):
    """What any command that asks this database takes, and what starting this program does: milliseconds."""
    commands = [daemon.psql(one.socket) + ["-c", "SELECT 1"], [one.binary, "--version"]]
    times = [[], []]
    for _, (place, words) in itertools.product(range(11), enumerate(commands)):
        before = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=daemon.ENVIRONMENT)
        times[place].append((time.monotonic() - before) * 1000)
    return [statistics.median(some[1:]) for some in times]


def held_pairs(count):
    """All pairs of dimensions, with whether each is held against the aggregate."""
    seen = set()
    for pair in itertools.combinations(Aggregate.DIMENSIONS, 2):
        is_held = count <= ALL_PAIRS_MAX or not seen.intersection(pair)
        if is_held:
            seen.update(pair)
        yield pair, is_held


def time_pairs(asker, now, count):
    """Every pair of dimensions over HTTP: lines of a table of the slowest ones, and a sentence."""
    times, held = [], []
    for pair, is_held in held_pairs(count):
        words, name = ["--by", ",".join(pair)], " and ".join(pair)
        asker.connect()
        asker.over_http(words)
        took, page = asker.over_http(words)
        asker.connection.close()
        times.append((took, name, [page["totals"].get(count) for count in Aggregate.COUNTS]))
        if is_held:
            log(f"by {name}: {took:,.0f} ms")
            now.hold(name, words, asker.command(words)[1])
            held.append(name)
    if any(totals != times[0][2] for _, _, totals in times):
        daemon.fail("the pairs of dimensions have different totals")
    times.sort(reverse=True)
    over = sum(took > PAIR_TARGET for took, _, _ in times)
    lines = ["| the slowest pairs | over HTTP, ms |", "|---|---|"]
    lines += [f"| by {name} | {took:,.0f} |" for took, name, _ in times[:10]]
    which = "all of them" if len(held) == len(times) else ", ".join(held)
    return lines, (
        f"All {len(times)} pairs of dimensions, each once and warm: slowest {times[0][0]:,.0f} ms, median "
        f"{statistics.median(took for took, _, _ in times):,.0f} ms, {over} above {PAIR_TARGET:,} ms. "
        f"Held against the aggregate: {which}.")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=".build/release/tapline")
    options.add_argument("--directory", default=".build/bench/report")
    options.add_argument("--events", type=int, default=10_000_000, help="of the database")
    options.add_argument("--wide", action="store_true",
                         help="events with values of every dimension; in a directory of its own")
    options.add_argument("--write", help="the document to write the section to")
    chosen = options.parse_args()
    base = scale.Base(os.path.abspath(chosen.binary), os.path.abspath(chosen.directory),
                      chosen.events, events.Wide if chosen.wide else events.Stream)
    base.build()
    base.warm()
    one, _ = base.ready()
    with one:
        section = measure(one, base, chosen)
    print(section)
    if chosen.write:
        document.write_section(chosen.write, "report", section)


def measure(one, base, chosen):
    newest, middle, past = one.sql(
        "SELECT t.batch, b.batch, to_char(b.stored_at AT TIME ZONE 'UTC', "
        "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
        "FROM tapline.turn t JOIN tapline.batch b ON b.batch = t.batch / 2").strip().split("|")
    # The last seven of the days that events are of; a quarter of an hour, as `7d` is, but no hour.
    week = (base.known["first_at"] + (scale.DAYS - 7) * 86_400) // 3600 * 3600 + 900
    places = {"MIDDLE": past, "WEEK": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(week))}
    asker = Asker(one)
    lines = ["| report | the command, ms | over HTTP, ms | counts of the aggregate's units, ms | rows, the same |",
             "|---|---|---|---|---|"]
    with Aggregate(one, newest) as now:
        with Aggregate(one, middle) as then:
            for text, words in QUESTIONS:
                aggregate = then if "MIDDLE" in words else now
                words = [places.get(word, word) for word in words]
                log(text)
                took, served, report = asker.time(words)
                slow = aggregate.hold(text, words, report)
                lines.append(f"| {text} | {took:,.0f} | {served:,.0f} | {slow:,.0f} | "
                             f"{len(report['campaigns']):,} |")
        psql, version = floor(one)
        lines += [f"| … `psql -c 'SELECT 1'` | {psql:,.0f} |  |  |  |",
                  f"| … `tapline --version` | {version:,.0f} |  |  |  |"]
        pairs, sentence = time_pairs(asker, now, chosen.events)
        for text, words in LONG:
            log(text)
            took, report = asker.command(words)
            slow = now.hold(text, words, report)
            lines.append(f"| {text}, once | {took:,.0f} |  | {slow:,.0f} | {len(report['campaigns']):,} |")
        seconds = now.seconds
    wide = ", with values of every dimension" if chosen.wide else ""
    return "\n\n".join([
        f"## Reports over {chosen.events:,} stored events{wide}",
        "What each line means: `Benchmarks/report.py`. The aggregate is plain SQL over the event table: its units\n"
        f"took {seconds:,.0f} s, once for all questions, and its counts of them what is said. Its counts, rates and "
        "totals were\nthe report's, row by row, and so were those over HTTP.",
        document.heading("medians of 3"), "\n".join(lines), sentence, "\n".join(pairs)])


if __name__ == "__main__":
    main()
