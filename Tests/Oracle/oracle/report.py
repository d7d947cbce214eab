"""A report recomputed from the lines that were sent.

    python3 Tests/Oracle/report.py --events FILE.ndjson [--from T] [--to T] [--timezone ZONE]
        [--by D[,D]] [--by-activity] [--as-of T] [--app A] [--campaign C] [--include-test]
        [--test-devices FILE] [--devices FILE] [--categories FILE] [--compare REPORT.json]

`oracle.lines` says what is in FILE, `oracle.today` what is in the other files. With `--compare` the
differences are printed instead, and the exit status is 1 if there are any.

The contract is docs/reports.md and docs/events.md. Where they are silent these rules are followed;
(c) marks what they say themselves, (s) what sql/report had decided and is taken over from there.

Units
 1. (s) Each event with a `message_uid` belongs to one unit (app, message_uid, device), whatever
    its type, tracking types and custom ones too. Events without are in no unit and no row; of
    these only `launch` and `conversion` matter, through rules 14 and 17.
 2. (c; FAILED: s) An event without a device is of the message's only device. With several
    devices a `sent` or `failed` is in no unit and leaves SENT, and a `failed` FAILED too, of all
    units of the message unknown; all other events without a device are together one unit, as
    they are where no event names one.
 3. (c; of which event: s) An inbox event joins the unit of the earliest event, not of the inbox
    itself, of its app and device whose `inbox_message_uid` is its `message_uid` or
    `inbox_message_uid`. Devices are those of rule 2: an inbox event that is left without a
    device joins only what is without one too.
 4. (c) A unit's campaign: of its earliest `sent` that names one, else of its earliest event that
    does, else of the earliest `sent` of (app, message_uid) that names one, of any device and of
    none. "Earliest" is everywhere by (event_time, identity), identities compared as bytes.
 5. A unit has one value of platform, app_version, os_version, locale, country, provider,
    category and push_group, in both views: of its earliest event that carries one; else, but for
    category, of its device's registration as it is today; else null.
 6. An event carries a push_group or topic as the member `push_group` or `topic` of its
    properties as stored (where a field of the line itself ends up too), if that is a text that
    is not empty; a number is none.
 7. Topic: of the unit's earliest event that carries one; else all `topics` its device is
    registered for today, and the unit is in the row of each; else null.
 8. (c) A unit is test if one of its events, of any time known, says `is_test`, or if its device
    is marked. It is silent if one of its events says so. First sight is the earliest `sent`,
    else the earliest event.
 9. Whether the button of an `action` opens the app: `opens_app` of the event; else the category
    table's of (app, category_id, action_id), both of the event itself; else no. `clicked` is
    always a click.

Rows
10. The cohort view has the units whose first sight is in the period, with all their events. The
    activity view has the events whose event_time is in the period, and the units with at least
    one of them.
11. A row is a cell (app, values asked for). In the cohort view all events of a unit are in its
    cell, but under `type` and `action`, which are of the event: the unit is in the cell of each
    of its events. In the activity view `day` and `hour` are of the event too. All other values
    are the unit's.
12. Each set of docs/reports.md is computed from those events of a unit that are in the cell, as
    though it had no others; so are `clicks_total`, `late` and the sets that are named by what is
    missing (`implied`, ACCEPTED, `clicks_without_send`). Numerators stay within denominators.
    What rules 4 to 8 decide is decided from all events known, in the period or not. Totals are
    over all events of rule 10, each unit once.
13. `type` is the known word, of a custom event the word as sent; `action` is `action_id` of any
    event, null where there is none. A value that is not known is null, a campaign
    `(unattributed)`.

Influenced and converted
14. INFLUENCED is a matter of units with a device, by (app, device); all times are event_time. t0
    is of the unit's earliest OBSERVED event, else of its earliest `sent`, else the unit is not
    influenced. The unit is DELIVERED and has no click at all. Its launch is the first after t0
    (t0 itself excluded) of the device that is not within 5 s (5 s included), before or after, of
    any click of the device, whatever message; it is at most 12 h after t0 (12 h included).
15. A newer message in between is another unit of (app, device), DELIVERED and not silent, of any
    campaign, test or not, clicked or not, with t0 < its t0 < the launch, both excluded. Of two
    with one t0 neither is newer. One without a t0, such as a click alone, takes nothing.
16. `launch` and `conversion` are of their own device, or if they name a message and no device,
    of the device by rule 2. `is_test` of theirs does not matter. A click is of its unit's
    device.
17. Each `conversion` goes to one click: the last one, by (event_time, identity), of (app,
    device) that is not after it. The unit of that click is CONVERTED if it is at most 24 h
    earlier (0 and 24 h included). A message that the conversion names does not matter. A test or
    silent unit takes it as any other.
18. Both are facts of a unit from all events known, in the period or not. A unit is counted
    INFLUENCED in each cell where it is DELIVERED, and CONVERTED where it has a click (rule 12),
    so that INFLUENCED, CONVERTED ⊆ DELIVERED in each row.

Time to open
19. `occurred_at` of the unit's first click − `occurred_at` of its first OBSERVED event, both
    first by (event_time, identity) of all events known; none if one of them has no `occurred_at`
    that was believed (its time_rule is `server`), or the unit has no device. It is in the cells
    and the period of that first click alone.
20. p50, p90 and p99 are PostgreSQL's percentile_cont, in seconds, over those that are not
    negative; null without any. Negative ones are `clicks_before_receipts`. Silent units are in
    both.

Counts, rates, flags
21. (c) Silent units are in every count; they are in no rate but delivery_rate, nor in
    action_share.
22. (s) `sent`, `clicks_without_send`, delivery_rate and ctr_sent are null in a row with a unit,
    not excluded as test, of an app without any `sent` known at `as_of`, or with SENT unknown by
    rule 2; if all its units are excluded, with any such unit; if there are none, where the app
    asked for, or any if none is, has no `sent`. `failed` and `failed_but_clicked` are null where
    FAILED is unknown for a unit not excluded; `accepted` and ctr_accepted where either is.
23. `action_share` is a list of rates with `category_id` and `action_id`, both of the event
    itself and null where it has none: units with such an action / |ACTION|, those with most units
    first.
24. Of units not excluded: `campaign_mismatch`, `sent_without_device` (one unit has it);
    `ctr_100_percent` (ctr_delivered is 1 of more than 30); `clicks_before_receipts`
    (`clicks_before_receipts` > 0); `receipt_biased` (in the cell is a `received` that was sent as
    `push_receive`, in any case, and says itself that its platform is ios); `taps_not_forwarded`
    (more than 30 of ctr_delivered's denominator, none clicked, and at least 2 % of them influenced
    by a launch at most 60 s after t0). Totals have them too.
25. `ctr_drop`, only with `--by app_version`: among rows alike in all other keys with more than
    30 of ctr_delivered's denominator, in order of the numbers in the version (then of its text),
    one with less than half of the ctr_delivered of the row before it, the comparison's p being
    below 0.05 with a verdict.

Time
26. `--as-of` is of the events whose stored_at is not after it. It prints the earlier of that and
    the newest stored_at; `data_through` is the same, as nothing is spooled here.
27. A `day` is `YYYY-MM-DD` of the zone's clock, an `hour` that clock's hour with the offset of
    the very time: of the hour that comes twice there are two. In a zone whose offset changes by
    half an hour the label of an hour may be one that the clock did not show.

Choice
28. `--app`, `--campaign` and the period choose units and events after rules 2 to 9 and 14 to 19:
    messages, clicks and launches that are not asked for still take what is theirs.
"""
import argparse
import collections
import itertools
import json
import sys
import zoneinfo

from oracle import compare, effects, lines, rows, times, today, units

DIMENSIONS = (
    "campaign", "day", "hour", "platform", "app_version", "os_version", "locale", "country",
    "provider", "category", "action", "push_group", "topic", "type")
OF_EVENTS = {"action", "type"}
OF_TIME = {"day", "hour"}


class Options:
    """What a report is asked for; times are microseconds."""

    def __init__(self, by=("campaign",), start=None, end=None, zone="UTC", by_activity=False,
                 as_of=None, app=None, campaign=None, include_test=False,
                 conversion_window=effects.CONVERSION):
        unknown = set(by) - set(DIMENSIONS)
        if unknown or not 1 <= len(set(by)) == len(by) <= 2:
            raise ValueError(f"not one or two dimensions: {', '.join(by)}")
        self.by, self.start, self.end = tuple(by), start, end
        self.zone_name = zone
        self.zone = times.UTC if zone == "UTC" else zoneinfo.ZoneInfo(zone)
        self.by_activity, self.as_of = by_activity, as_of
        self.app, self.campaign, self.include_test = app, campaign, include_test
        self.conversion_window = conversion_window

    def has(self, time):
        """Whether the time is in the period, which is half-open."""
        return (self.start is None or time >= self.start) and (
            self.end is None or time < self.end)


class Reports:
    """Reports of the same events; what does not depend on the options is decided once."""

    def __init__(self, events, known=None):
        self.events, self.known = events, known or today.Today()
        self.newest = max((e.stored for e in events if e.stored is not None), default=None)
        self._decided = {}

    def of(self, options):
        """The report as JSON has it."""
        as_of = self.newest
        if options.as_of is not None:
            as_of = options.as_of if as_of is None else min(options.as_of, as_of)
        return self._rows(options) | _head(options, as_of)

    def _units(self, as_of, conversion_window):
        """The units of the events known at a time, and the apps that send."""
        known = as_of, conversion_window
        if known not in self._decided:
            events = [e for e in self.events
                      if as_of is None or e.stored is None or e.stored <= as_of]
            every = units.of(events, self.known)
            effects.decide(every, events, conversion_window)
            self._decided[known] = every, {e.app for e in events if e.type == "sent"}
        return self._decided[known]

    def _rows(self, options):
        every, sending = self._units(options.as_of, options.conversion_window)
        totals, cells = [], collections.defaultdict(list)
        for unit in every:
            if options.app not in (None, unit.app) or options.campaign not in (None, unit.campaign):
                continue
            chosen = _chosen(unit, options)
            if not chosen:
                continue
            totals.append(rows.Part(unit, chosen, self.known))
            for key, members in _cells(unit, chosen, options).items():
                cells[key].append(rows.Part(unit, members, self.known))
        found = []
        for key, parts in cells.items():
            found.append(_keys(key, options) | rows.row(parts, sending, options.include_test))
        if "app_version" in options.by:
            rows.flag_drops(found, ["app", *map(_name, options.by)])
        is_sending = options.app in sending if options.app is not None else bool(sending)
        return {
            "totals": {"app": options.app, "campaign_id": None} | rows.row(
                totals, sending, options.include_test, is_sending),
            "campaigns": sorted(found, key=lambda row: _place(row, options)),
        }


def report(envelopes, options, known=None):
    """The report of envelopes in the order of loading."""
    return Reports(lines.events_of(envelopes), known).of(options)


def _chosen(unit, options):
    """The events of the unit that the report is of."""
    if options.by_activity:
        return [e for e in unit.events if options.has(e.time)]
    return unit.events if options.has(unit.first_at) else []


def _cells(unit, events, options):
    """The cells that the unit is in, each with the events that put it there."""
    cells = collections.defaultdict(list)
    for event in events:
        values = [_values(name, unit, event, options) for name in options.by]
        for key in itertools.product([unit.app], *values):
            cells[key].append(event)
    return cells


def _values(name, unit, event, options):
    """The values of one dimension that an event of the unit counts under."""
    if name == "campaign":
        return [unit.campaign]
    if name == "topic":
        return unit.topics
    if name == "type":
        return [event.word if event.type == "custom" else event.type]
    if name == "action":
        return [event.action_id]
    if name in OF_TIME:
        time = event.time if options.by_activity else unit.first_at
        label = times.day_label if name == "day" else times.hour_label
        return [label(time, options.zone)]
    return [unit.values[name]]


def _name(dimension):
    return "campaign_id" if dimension == "campaign" else dimension


def _keys(key, options):
    return {"app": key[0], "campaign_id": None} | dict(zip(map(_name, options.by), key[1:]))


def _place(row, options):
    """Days and hours rise; without these the most delivered come first."""
    def rising(name):
        return row[name] is not None and (0, row[name].encode()) or (1, b"")
    names = [_name(name) for name in options.by]
    first = [rising(name) for name in names] if OF_TIME & set(options.by) \
        else [-row["delivered"]]
    return first + [rising("app"), *map(rising, names)]


def _head(options, as_of):
    def written(time):
        return None if time is None else times.text(time, options.zone)
    return {
        "as_of": written(as_of), "data_through": written(as_of), "from": written(options.start),
        "to": written(options.end), "timezone": options.zone_name,
        "cohort": "activity" if options.by_activity else "first_seen"}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="The rules are in the source.")
    parser.add_argument("--events", required=True, metavar="FILE")
    parser.add_argument("--from", dest="start", metavar="T")
    parser.add_argument("--to", dest="end", metavar="T")
    parser.add_argument("--timezone", "--tz", default="UTC", metavar="ZONE")
    parser.add_argument("--by", default="campaign", metavar="D[,D]")
    parser.add_argument("--by-activity", action="store_true")
    parser.add_argument("--as-of", metavar="T")
    parser.add_argument("--app")
    parser.add_argument("--campaign")
    parser.add_argument("--include-test", action="store_true")
    for name in ("--test-devices", "--devices", "--categories"):
        parser.add_argument(name, metavar="FILE")
    parser.add_argument("--compare", metavar="REPORT.json")
    asked = parser.parse_args(arguments)
    try:
        zone = zoneinfo.ZoneInfo(asked.timezone)

        def time(value):
            return None if value is None else times.option(value, zone)
        options = Options(
            by=asked.by.split(","), start=time(asked.start), end=time(asked.end),
            zone=asked.timezone, by_activity=asked.by_activity, as_of=time(asked.as_of),
            app=asked.app, campaign=asked.campaign, include_test=asked.include_test)
    except (ValueError, zoneinfo.ZoneInfoNotFoundError) as error:
        parser.error(str(error))
    known = today.Today(*map(today.read, (asked.devices, asked.categories, asked.test_devices)))
    with open(asked.events, encoding="utf-8") as file:
        found = report((line for line in file if line.strip()), options, known)
    if asked.compare is None:
        json.dump(found, sys.stdout, indent=1, ensure_ascii=False)
        print()
        return 0
    with open(asked.compare, encoding="utf-8") as file:
        differences = compare.reports(found, json.load(file), asked.by.split(","))
    for line in differences:
        print(line)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
