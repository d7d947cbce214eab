"""Where two reports differ, but for what was known when, and what only the second has."""
import math

NOT_COMPARED = {"as_of", "data_through"}


def reports(expected, actual, by):
    """Sorted lines, none if they say the same; rows are found by their keys, in any order."""
    names = ["app", *("campaign_id" if name == "campaign" else name for name in by)]
    found = []
    for name in expected.keys() - NOT_COMPARED - {"campaigns"}:
        _value(name, expected[name], actual.get(name), found)
    mine, theirs = _keyed(expected, names), _keyed(actual, names)
    if len(theirs) != len(actual["campaigns"]):
        found.append("a row is there twice")
    for key in mine.keys() | theirs.keys():
        where = "row " + ", ".join(map(str, key))
        if key not in theirs:
            found.append(f"{where}: missing")
        elif key not in mine:
            found.append(f"{where}: not expected")
        else:
            _value(where, mine[key], theirs[key], found)
    return sorted(found)


def _keyed(report, names):
    return {tuple(row.get(name) for name in names): row for row in report["campaigns"]}


def _value(where, expected, actual, found):
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in expected:
            # Flags are a set.
            mine, theirs = (sorted(side[name]) if name == "flags" and name in side
                            else side.get(name, "nothing") for side in (expected, actual))
            _value(f"{where}: {name}", mine, theirs, found)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (mine, theirs) in enumerate(zip(expected, actual)):
            _value(f"{where}[{index}]", mine, theirs, found)
    elif isinstance(expected, float) and type(actual) in (int, float):
        if not math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9):
            found.append(f"{where}: expected {expected}, found {actual}")
    elif expected != actual:
        found.append(f"{where}: expected {expected!r}, found {actual!r}")
