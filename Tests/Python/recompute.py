#!/usr/bin/env python3
"""Recomputes a campaign report from the lines that were sent: the oracle of law 5.

It is written from the documents alone and shares nothing with the daemon or its SQL: plain
loops over dictionaries, slow and obvious. Python 3 standard library only.

    recompute.py --app APP [--by campaign,platform] [--from T] [--to T] [--tz ZONE]
                 [--received-at T] [--include-test] [--test-device D] FILE...
    recompute.py ... --compare REPORT.json FILE...      exit 1 and the differences, if any
    recompute.py --rows ... FILE...                     FILE is rows of tapline.event as JSON:
        app, key, type (its word), message_uid, ..., event_time and received_at in microseconds

FILE is NDJSON or NDJSON in gzip, as posted, retries included; `-` is standard input;
APP=FILE is of another app than --app.
A line that the daemon rejects is skipped. T is RFC 3339.
"""
import argparse
import datetime
import decimal
import gzip
import json
import math
import re
import sys
import zoneinfo
from collections import defaultdict

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000

STATUS = {
    "sent", "failed", "received", "displayed", "consumed", "confirmed", "clicked", "action",
    "dismissed", "inbox_received", "inbox_read", "inbox_open", "inbox_deleted",
}
INBOX = {"inbox_received", "inbox_read", "inbox_open", "inbox_deleted"}
TRACKING = {"launch", "inbox_fetch", "conversion"}
TYPE_ALIASES = {
    "pushreceived": "received", "push_receive": "received", "delivered": "received",
    "clickthru": "clicked", "click": "clicked", "open": "clicked", "opened": "clicked",
    "button": "action", "dismiss": "dismissed", "inboxopen": "inbox_open",
}
# The names of one field; the first of them that is there counts.
FIELD_NAMES = {
    "type": ["type", "event", "status", "kind"],
    "event_uid": ["event_uid", "uuid", "event_id", "insert_id"],
    "occurred_at": ["occurred_at", "timestamp", "time"],
    "properties": ["properties", "attributes", "props"],
}
IDS = [
    "message_uid", "device_id", "event_uid", "campaign_id", "action_id", "category_id",
    "inbox_message_uid", "person_id",
]
TEXTS = [
    "collapse_key", "platform", "app_version", "os_version", "sdk_version", "locale", "country",
    "provider",
]
FLAGS = ["opens_app", "is_test", "silent"]
DIMENSIONS = ["platform", "app_version", "os_version", "locale", "country", "provider"]
COUNTS = [
    "sent", "failed", "accepted", "observed", "delivered", "implied", "clicked", "clicks_total",
    "actions", "dismissed", "inbox_opened", "engaged", "test_excluded", "late",
    "clicks_without_send", "failed_but_clicked",
]
RATES = [
    "delivery_rate", "ctr_delivered", "ctr_sent", "ctr_accepted", "engagement_rate",
    "dismiss_rate",
]
UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
TYPE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?"
    r"(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)")


LINE_BYTES_MAX = 65_536
DEPTH_MAX = 64


class Rejected(Exception):
    """The daemon stores nothing of the line."""


class Number(str):
    """A JSON number as it was written."""


# Lines to events: docs/events.md.

def instant(value):
    """Microseconds since 1970 of a time as sent, or None where it says nothing usable."""
    if not isinstance(value, str):
        return None
    match = RFC3339.fullmatch(value)
    if match:
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        nanoseconds = int((match[7] or "0").ljust(9, "0"))
        try:
            base = datetime.datetime(year, month, day, tzinfo=UTC)
        except ValueError:
            return None
        if minute > 59 or second > 60 or hour > 24 or (
                hour == 24 and (minute or second or nanoseconds)):
            return None
        seconds = (base - EPOCH) // datetime.timedelta(seconds=1)
        seconds += hour * 3600 + minute * 60 + second
        if match[9]:
            offset = int(match[10]) * 3600 + int(match[11] or 0) * 60
            seconds -= offset if match[9] == "+" else -offset
        return seconds * 1_000_000 + (nanoseconds + 500) // 1000
    try:
        number = decimal.Decimal(value) if re.match(r"-?\d", value) else None
    except decimal.InvalidOperation:
        return None
    if number is None:
        return None
    for limit, scale in ((11, "1e6"), (14, "1e3"), (17, "1"), (20, "1e-3")):
        if abs(number) < 10 ** limit:
            return int((number * decimal.Decimal(scale)).to_integral_value())
    return None


def event_time(occurred, sent_at, received):
    def plausible(time):
        return received - 315_576_000_000_000 <= time <= received + 300_000_000
    if occurred is not None and sent_at is not None and sent_at >= occurred \
            and abs(received - sent_at) > 2_000_000:
        corrected = received - (sent_at - occurred)
        if plausible(corrected):
            return corrected
    if occurred is not None and plausible(occurred):
        return occurred
    return received


def identifier(name, value):
    if value is None:
        return None
    if not isinstance(value, str) or isinstance(value, Number) and not value.lstrip("-").isdigit():
        raise Rejected("invalid_type")
    if "\0" in value or any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise Rejected("invalid_character")
    if len(value.encode()) > 128:
        raise Rejected("field_too_long")
    if name in ("message_uid", "event_uid", "inbox_message_uid") and UUID.fullmatch(value):
        value = value.lower()
    return str(value) or None


def nesting(line):
    """How deep objects and arrays are in each other."""
    deepest = depth = 0
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', line):
        if token in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in "]}":
            depth -= 1
    return deepest


def parse_line(line, app, received):
    """One event as a dictionary with its identity; raises Rejected."""
    if len(line.encode()) > LINE_BYTES_MAX:
        raise Rejected("line_too_long")
    if nesting(line) > DEPTH_MAX:
        raise Rejected("too_deep")
    try:
        rest = json.loads(line, parse_int=Number, parse_float=Number, parse_constant=Number)
    except (ValueError, RecursionError):
        raise Rejected("bad_json")
    if not isinstance(rest, dict):
        raise Rejected("not_an_object")
    rest = {name: value for name, value in rest.items() if value is not None}

    def take(field):
        for name in FIELD_NAMES.get(field, [field]):
            if name in rest:
                return rest.pop(name)
        return None

    word = take("type")
    if not isinstance(word, str) or isinstance(word, Number) or not TYPE.fullmatch(word):
        raise Rejected("invalid_type")
    kind = TYPE_ALIASES.get(word.lower(), word.lower())
    if kind not in STATUS | TRACKING:
        kind = "custom"
    event = {"app": app, "type": kind, "received_at": received,
             "sent_as": word.lower()}
    for name in IDS:
        event[name] = identifier(name, take(name))
    if kind in INBOX and event["message_uid"] is None:
        event["message_uid"] = event["inbox_message_uid"]
    if event["campaign_id"] is None and {"activity_type", "activity_uid"} <= rest.keys():
        parts = [identifier(name, take(name)) for name in ("activity_type", "activity_uid")]
        if None not in parts:
            event["campaign_id"] = identifier("campaign_id", ":".join(parts))
    for name in FLAGS:
        event[name] = take(name)
        if event[name] not in (None, True, False):
            raise Rejected("invalid_type")
    for name in TEXTS:
        value = rest.get(name)
        event[name] = None
        if isinstance(value, str) and len(value.encode("utf-8", "replace")) <= 128:
            event[name] = str(take(name)) or None
    if event["platform"]:
        event["platform"] = event["platform"].lower()
    as_sent, sent_at = take("occurred_at"), take("sent_at")
    if not isinstance(as_sent, str) or not as_sent:
        as_sent = None
    properties = take("properties")
    content = json.dumps([properties, rest], sort_keys=True)

    where = (app, event["device_id"], kind if kind != "custom" else word, event["message_uid"])
    if kind in STATUS and event["message_uid"] is None:
        raise Rejected("missing_message_uid")
    if event["event_uid"] is not None:
        identity = (1, *where, event["event_uid"])
    elif kind in STATUS:
        identity = (2, *where, event["action_id"])
    elif as_sent is None or (event["device_id"] is None and event["message_uid"] is None):
        raise Rejected("no_identity")
    else:
        identity = (3, *where, as_sent, content)
    event["event_time"] = event_time(instant(as_sent), instant(sent_at), received)
    # Stands for the identity's hash, which only breaks ties of event_time.
    event["key"] = json.dumps(identity)
    return event


def dedupe(events):
    """The first of each identity, in the order sent (law 2)."""
    kept = {}
    for event in events:
        kept.setdefault(event["key"], event)
    return list(kept.values())


# Events to units.

def order(event):
    return (event["event_time"], event["key"])


def earliest(events, field):
    named = [e for e in sorted(events, key=order) if e.get(field) is not None]
    return named[0][field] if named else None


def units_of(events, test_devices=()):
    """All units of the events: `test_devices` are pairs of app and device marked now."""
    events = [e for e in events if e["message_uid"] is not None]
    messages = defaultdict(list)
    for event in events:
        messages[event["app"], event["message_uid"]].append(event)

    placed, unsure = [], defaultdict(set)
    for message, members in messages.items():
        devices = {e["device_id"] for e in members if e["device_id"] is not None}
        for event in members:
            device = event["device_id"]
            if device is None and len(devices) == 1:
                device = next(iter(devices))
            elif device is None and len(devices) > 1 and event["type"] in ("sent", "failed"):
                unsure[message].add(event["type"])
                continue
            placed.append((event, device))

    names = defaultdict(list)  # (app, device, inbox id) -> the push events that name it
    for event, device in placed:
        if event["type"] not in INBOX and event["inbox_message_uid"] is not None:
            names[event["app"], device, event["inbox_message_uid"]].append(event)
    members = defaultdict(list)
    for event, device in placed:
        message = event["message_uid"]
        if event["type"] in INBOX:
            naming = names.get((event["app"], device, message), [])
            if event["inbox_message_uid"] not in (None, message):
                naming = naming + names.get(
                    (event["app"], device, event["inbox_message_uid"]), [])
            if naming:
                message = min(naming, key=order)["message_uid"]
        members[event["app"], message, device].append(event)

    units = []
    for (app, message, device), own in members.items():
        types = {e["type"] for e in own}
        sents = [e for e in own if e["type"] == "sent"]
        clicks = [e for e in own if e["type"] == "clicked"
                  or (e["type"] == "action" and e["opens_app"])]
        campaign = earliest(sents, "campaign_id")
        if campaign is None:
            campaign = earliest(own, "campaign_id")
        if campaign is None:
            campaign = earliest(
                [e for e in messages[app, message] if e["type"] == "sent"], "campaign_id")
        unit = {
            "app": app, "message_uid": message, "device_id": device,
            "campaign": "(unattributed)" if campaign is None else campaign,
            "campaign_mismatch": len({e["campaign_id"] for e in own} - {None}) > 1,
            "sent_unknown": bool(unsure.get((app, message))),
            "failed_unknown": "failed" in unsure.get((app, message), ()),
            "first_at": min(e["event_time"] for e in sents or own),
            "clicks": len(clicks),
            "late": sum(e["received_at"] - e["event_time"] > DAY for e in own),
            "test": any(e["is_test"] for e in own) or (app, device) in test_devices,
            "silent": any(e["silent"] for e in own),
            "biased": any(e["platform"] == "ios" and e["sent_as"] == "push_receive" for e in own),
            "SENT": "sent" in types, "FAILED": "failed" in types,
            "OBSERVED": bool(types & {"received", "displayed", "consumed", "confirmed"}),
            "CLICK": bool(clicks), "ACTION": "action" in types,
            "DISMISS": "dismissed" in types, "INBOX": "inbox_open" in types,
        }
        for dimension in DIMENSIONS:
            unit[dimension] = earliest(own, dimension)
        unit["DELIVERED"] = any(
            unit[s] for s in ("OBSERVED", "CLICK", "ACTION", "DISMISS", "INBOX"))
        unit["ENGAGED"] = unit["CLICK"] or unit["ACTION"] or unit["INBOX"] \
            or "confirmed" in types
        unit["ACCEPTED"] = unit["SENT"] and (not unit["FAILED"] or unit["DELIVERED"])
        units.append(unit)
    return units


# Units to a report: docs/reports.md.

def wilson(k, n):
    z = 1.959963984540054
    p = k / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if k == 0 else max(0.0, middle - half),
            1.0 if k == n else min(1.0, middle + half))


def rate(k, n):
    if k is None or n is None:
        return dict(numerator=None, denominator=None, value=None, low=None, high=None)
    if n == 0:
        return dict(numerator=k, denominator=n, value=None, low=None, high=None)
    low, high = wilson(k, n)
    return dict(numerator=k, denominator=n, value=k / n, low=low, high=high)


def row_of(units, sending, include_test=False, empty_is_unsent=False):
    counted = [u for u in units if include_test or not u["test"]]
    loud = [u for u in counted if not u["silent"]]
    scope = counted or units

    def count(test, of=None):
        return sum(1 for u in (counted if of is None else of) if test(u))

    has_sent = all(u["app"] in sending and not u["sent_unknown"] for u in scope) \
        if scope else not empty_is_unsent
    has_failed = not any(u["failed_unknown"] for u in counted)
    has_both = has_sent and has_failed
    row = {
        "sent": count(lambda u: u["SENT"]) if has_sent else None,
        "failed": count(lambda u: u["FAILED"]) if has_failed else None,
        "accepted": count(lambda u: u["ACCEPTED"]) if has_both else None,
        "observed": count(lambda u: u["OBSERVED"]),
        "delivered": count(lambda u: u["DELIVERED"]),
        "implied": count(lambda u: u["DELIVERED"] and not u["OBSERVED"]),
        "clicked": count(lambda u: u["CLICK"]),
        "clicks_total": sum(u["clicks"] for u in counted),
        "actions": count(lambda u: u["ACTION"]),
        "dismissed": count(lambda u: u["DISMISS"]),
        "inbox_opened": count(lambda u: u["INBOX"]),
        "engaged": count(lambda u: u["ENGAGED"]),
        "test_excluded": len(units) - len(counted),
        "late": sum(u["late"] for u in counted),
        "clicks_without_send":
            count(lambda u: u["CLICK"] and not u["SENT"]) if has_sent else None,
        "failed_but_clicked":
            count(lambda u: u["CLICK"] and u["FAILED"]) if has_failed else None,
    }
    delivered = count(lambda u: u["DELIVERED"], loud)
    clicked = count(lambda u: u["CLICK"], loud)
    row["delivery_rate"] = rate(
        count(lambda u: u["DELIVERED"] and u["SENT"]) if has_sent else None, row["sent"])
    row["ctr_delivered"] = rate(clicked, delivered)
    row["ctr_sent"] = rate(
        count(lambda u: u["CLICK"] and u["SENT"], loud) if has_sent else None,
        count(lambda u: u["SENT"], loud) if has_sent else None)
    row["ctr_accepted"] = rate(
        count(lambda u: u["CLICK"] and u["ACCEPTED"], loud) if has_both else None,
        count(lambda u: u["ACCEPTED"], loud) if has_both else None)
    row["engagement_rate"] = rate(count(lambda u: u["ENGAGED"], loud), delivered)
    row["dismiss_rate"] = rate(
        count(lambda u: u["DISMISS"] and not u["CLICK"], loud), delivered)
    flags = []
    if any(u["campaign_mismatch"] for u in counted):
        flags.append("campaign_mismatch")
    if delivered > 30 and clicked == delivered:
        flags.append("ctr_100_percent")
    if any(u["sent_unknown"] for u in counted):
        flags.append("sent_without_device")
    if any(u["biased"] for u in counted):
        flags.append("receipt_biased")
    row["flags"] = flags
    return row


def dimension(unit, name, zone):
    if name == "campaign":
        return unit["campaign"]
    if name in ("day", "hour"):
        at = (EPOCH + datetime.timedelta(microseconds=unit["first_at"])).astimezone(zone)
        if name == "day":
            return at.strftime("%Y-%m-%d")
        return at.replace(minute=0, second=0, microsecond=0).isoformat(timespec="minutes")
    return unit[name]


def report(events, by=("campaign",), start=None, end=None, zone=UTC, app=None, campaign=None,
           include_test=False, test_devices=()):
    """The `totals` and `campaigns` of a report over deduplicated events."""
    sending = {e["app"] for e in events if e["type"] == "sent" and app in (None, e["app"])}
    units = [
        u for u in units_of(events, test_devices)
        if (start is None or u["first_at"] >= start) and (end is None or u["first_at"] < end)
        and app in (None, u["app"]) and campaign in (None, u["campaign"])
    ]
    cells = defaultdict(list)
    for unit in units:
        cells[(unit["app"], *(dimension(unit, name, zone) for name in by))].append(unit)
    rows = []
    for key, members in cells.items():
        row = row_of(members, sending, include_test)
        row["app"] = key[0]
        row["campaign_id"] = None
        for name, value in zip(by, key[1:]):
            row["campaign_id" if name == "campaign" else name] = value
        rows.append(row)
    totals = row_of(units, sending, include_test, empty_is_unsent=not sending)
    return {"totals": totals, "campaigns": rows}


# The command.

def differences(expected, actual, by):
    """Lines that say where the reports differ; numbers to 9 digits."""
    names = ["app", "campaign_id"] + [name for name in by if name != "campaign"]

    def keyed(rows):
        return {tuple(row.get(name) for name in names): row for row in rows}

    def compare(where, mine, theirs):
        if isinstance(mine, dict):
            for name in mine:
                compare(f"{where}.{name}", mine[name], (theirs or {}).get(name))
        elif isinstance(mine, float) and isinstance(theirs, (int, float)):
            if not math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12):
                found.append(f"{where}: expected {mine}, found {theirs}")
        elif mine != theirs:
            found.append(f"{where}: expected {mine!r}, found {theirs!r}")

    found = []
    compare("totals", expected["totals"], actual["totals"])
    mine, theirs = keyed(expected["campaigns"]), keyed(actual["campaigns"])
    if len(theirs) != len(actual["campaigns"]):
        found.append("a row is there twice")
    for key in mine.keys() | theirs.keys():
        if key not in mine or key not in theirs:
            found.append(f"row {key}: {'not expected' if key not in mine else 'missing'}")
        else:
            compare(f"row {key}", mine[key], theirs[key])
    return sorted(found)


def read_lines(path):
    data = sys.stdin.buffer.read() if path == "-" else open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--app", help="the app of the key; with --rows, only this app")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--by", default="campaign")
    parser.add_argument("--from", dest="start")
    parser.add_argument("--to", dest="end")
    parser.add_argument("--tz", default="UTC")
    parser.add_argument("--campaign")
    parser.add_argument("--received-at", help="when the lines were received; default now")
    parser.add_argument("--include-test", action="store_true")
    parser.add_argument("--test-device", action="append", default=[], metavar="D",
                        help="device marked now, of the app; or app:device")
    parser.add_argument("--compare", metavar="REPORT.json")
    options = parser.parse_args()
    if not options.app and not options.rows and not all("=" in path for path in options.files):
        parser.error("--app is required")
    if options.received_at:
        received = instant(options.received_at)
    else:
        received = (datetime.datetime.now(UTC) - EPOCH) // datetime.timedelta(microseconds=1)
    events, rejected = [], 0
    for path in options.files:
        of_app, name = re.fullmatch(r"(?:([^/=]+)=)?(.*)", path).groups()
        for line in read_lines(name):
            try:
                events.append(json.loads(line) if options.rows else
                              parse_line(line.decode(), of_app or options.app, received))
            except (Rejected, UnicodeDecodeError):
                rejected += 1
    marked = {tuple(d.split(":", 1)) if ":" in d else (options.app, d)
              for d in options.test_device}
    by = options.by.split(",")
    expected = report(
        dedupe(events), by=by, start=instant(options.start), end=instant(options.end),
        zone=zoneinfo.ZoneInfo(options.tz), app=options.app, campaign=options.campaign,
        include_test=options.include_test, test_devices=marked)
    if not options.compare:
        json.dump(expected, sys.stdout, indent=2, sort_keys=True)
        print()
        return 0
    with open(options.compare, encoding="utf-8") as file:
        found = differences(expected, json.load(file), by)
    for line in found:
        print(line)
    print(f"{len(events)} lines read, {rejected} rejected, "
          f"{len(expected['campaigns'])} rows compared, {len(found)} differences", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
