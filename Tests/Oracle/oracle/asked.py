"""Reports to ask for, of every dimension and view and of many combinations: from a seed.

Each is a dictionary of options as the command line has them, with a text for each. `journeys` is
always `always` or `never`. In `as-of` is the stored_at of a batch.
"""
import itertools

from oracle import effects, times
from oracle.events import CAMPAIGNS, EDGES
from oracle.report import DIMENSIONS, Options

ZONES = ["UTC", "Asia/Kolkata", "Europe/Berlin", "America/New_York"]
WINDOWS = {None: effects.CONVERSION, "1h": times.HOUR, "36h": 36 * times.HOUR, "7d": 7 * times.DAY}
IN_CELLS = ["campaign", "day", "hour", "platform", "app_version", "os_version", "locale",
            "country", "provider"]


def reports(chance, count, envelopes, has_as_of):
    """So many reports of the envelopes; those of one dimension in each view first."""
    apps = sorted({e["app"] for e in envelopes})
    stored = sorted({e["stored_at"] for e in envelopes})
    pairs = list(itertools.permutations(DIMENSIONS, 2))
    pairs_in_cells = list(itertools.permutations(IN_CELLS, 2))
    chance.shuffle(pairs)
    chance.shuffle(pairs_in_cells)
    for number in range(count):
        asked = {"tz": ZONES[number % 4]}
        if number < 2 * len(DIMENSIONS):
            asked |= {"by": DIMENSIONS[number // 2], "journeys": "always"}
            if number % 2:
                asked["by-activity"] = "true"
        elif number % 3:
            asked |= {"by": ",".join(pairs[number % len(pairs)]), "journeys": "always"}
            _choose(asked, chance, apps, stored if has_as_of else [])
        else:
            asked |= {"by": ",".join(pairs_in_cells[number % len(pairs_in_cells)]),
                      "journeys": "never"}
            if chance.random() < 0.2:
                asked["by"] = asked["by"].split(",")[0]
            _choose(asked, chance, apps, stored if has_as_of and number % 2 else [])
        yield asked


def _choose(asked, chance, apps, stored):
    """Adds some of the options that leave something out."""
    happens = chance.random
    if happens() < 0.5:
        edges = sorted(chance.sample(EDGES, 2), key=times.parse)
        off = chance.choice([0, 0, times.SECOND, -1])
        for name, edge in zip(("from", "to"), edges):
            if happens() < 0.7:
                asked[name] = times.text(times.parse(edge) + off)
    elif happens() < 0.3:
        asked["from"] = chance.choice(["2026-03-29", "2026-10-25", "2026-11-01", "2026-03-08"])
    if happens() < 0.2:
        asked["app"] = chance.choice([*apps, "nobody's"])
    if happens() < 0.15:
        asked["campaign"] = chance.choice([*CAMPAIGNS, "(unattributed)"])
    if happens() < 0.2:
        asked["include-test"] = "true"
    if asked["journeys"] == "always" and happens() < 0.4:
        asked["conversion-window"] = chance.choice(list(WINDOWS)[1:])
    if asked["journeys"] == "always" and happens() < 0.5:
        asked["by-activity"] = "true"
    if stored and happens() < 0.4:
        asked["as-of"] = chance.choice(stored)


def options(asked):
    """What the oracle needs to know of it."""
    zone = Options(zone=asked["tz"]).zone
    start, end, as_of = (
        times.option(asked[name], zone) if name in asked else None
        for name in ("from", "to", "as-of"))
    return Options(
        by=asked["by"].split(","), start=start, end=end, zone=asked["tz"],
        by_activity="by-activity" in asked, as_of=as_of, app=asked.get("app"),
        campaign=asked.get("campaign"), include_test="include-test" in asked,
        conversion_window=WINDOWS[asked.get("conversion-window")])
