"""Small sets of events, written by hand, and reports of them."""
from oracle import report, times
from oracle.today import Today

NOON = times.parse("2026-06-01T12:00:00Z")


def at(seconds):
    """RFC 3339, so many seconds after noon of 1 June 2026."""
    return times.text(NOON + round(seconds * times.SECOND))


def event(kind, message="m", device="d", seconds=0, app="shop", received=None, stored=None, **more):
    """An envelope; the event is received when it happens, unless another time is given."""
    line = {"type": kind, "occurred_at": at(seconds)} | more
    if message is not None:
        line["message_uid"] = message
    if device is not None:
        line["device_id"] = device
    envelope = {"app": app, "received_at": at(seconds if received is None else received),
                "event": line}
    if stored is not None:
        envelope["stored_at"] = at(stored)
    return envelope


def of(envelopes, today=(), **options):
    """The report; `today` are the lists of `oracle.today.Today`."""
    for name in ("start", "end", "as_of"):
        if name in options:
            options[name] = times.parse(options[name])
    return report.report(envelopes, report.Options(**options), Today(*today))


def totals(envelopes, today=(), **options):
    return of(envelopes, today, **options)["totals"]


def table(envelopes, by, *columns, today=(), **options):
    """Rows as tuples of the values asked for and then of columns, in the order of the report."""
    found = of(envelopes, today, by=by.split(","), **options)["campaigns"]
    names = ["campaign_id" if name == "campaign" else name for name in by.split(",")]
    return [tuple(row[name] for name in [*names, *columns]) for row in found]


def fraction(rate):
    return rate["numerator"], rate["denominator"]
