#!/usr/bin/env python3
"""Compares many reports of one set of events with the oracle's; exit status 1 if any differs.

DIR is what `generate.py --reports` wrote, with one line more: DIR/reports.ndjson has a report for
each line of DIR/asked.ndjson.
"""
import argparse
import json
import pathlib
import sys

from oracle import asked, compare, lines, report, today

OF_JOURNEYS = ("influenced", "converted", "clicks_before_receipts", "action_share", "time_to_open")
RATES_OF_JOURNEYS = ("influenced_rate", "conversion_rate")
OF_DEVICES = ("platform", "app_version", "os_version", "locale", "country", "provider")
FLAGS_OF_JOURNEYS = {"clicks_before_receipts", "taps_not_forwarded"}
UNKNOWN = {"numerator": None, "denominator": None, "value": None, "low": None, "high": None}


def without_journeys(found):
    """The report as it is where nobody looks at what devices did."""
    for row in [found["totals"], *found["campaigns"]]:
        row.update(dict.fromkeys(OF_JOURNEYS))
        row.update(dict.fromkeys(RATES_OF_JOURNEYS, UNKNOWN))
        row["flags"] = [flag for flag in row["flags"] if flag not in FLAGS_OF_JOURNEYS]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory", type=pathlib.Path, metavar="DIR")
    directory = parser.parse_args().directory
    with open(directory / "events.ndjson", encoding="utf-8") as file:
        events = lines.events_of(file)
    devices, categories, test_devices = (
        today.read(directory / f"{name}.ndjson") for name in ("devices", "categories", "test_devices"))
    _fill(events, {(device["app"], device["device_id"]): device for device in devices})
    # Topics of a device are no dimension, so nothing is left that is looked up in devices.
    oracle = report.Reports(events, today.Today((), categories, test_devices))
    every, found = (today.read(directory / f"{name}.ndjson") for name in ("asked", "reports"))
    if len(every) != len(found):
        sys.exit(f"{len(every)} reports were asked for, and {len(found)} are there")
    rows = numbers = differing = 0
    for asking, actual in zip(every, found):
        expected = oracle.of(asked.options(asking))
        if asking["journeys"] == "never":
            expected = without_journeys(expected)
        differences = compare.reports(expected, actual, asking["by"].split(","))
        rows += 1 + len(expected["campaigns"])
        numbers += sum(map(_numbers, [expected["totals"], *expected["campaigns"]]))
        if differences:
            differing += 1
            print(f"{json.dumps(asking, ensure_ascii=False)}: {len(differences)} differences")
            print("".join(f"    {line}\n" for line in differences[:8]), end="")
    print(f"{len(events)} events, {len(every)} reports, {rows} rows, {numbers} numbers: "
          f"{differing or 'no'} reports differ")
    return 1 if differing else 0


def _fill(events, devices):
    """Gives each event what its device said long ago and it does not say itself (docs/devices.md)."""
    for event in events:
        device = devices.get((event.app, event.device_id), {})
        for name in OF_DEVICES:
            if getattr(event, name) is None:
                setattr(event, name, device.get(name))
        group = (event.properties or {}).get("push_group")
        if "push_group" in device and not (type(group) is str and group):
            event.properties = (event.properties or {}) | {"push_group": device["push_group"]}


def _numbers(value):
    """How many numbers and nulls are in a value."""
    if isinstance(value, dict):
        return sum(map(_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(_numbers, value))
    return 0 if isinstance(value, str) else 1


if __name__ == "__main__":
    sys.exit(main())
