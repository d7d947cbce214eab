"""Units to one row of a report: counts, rates and flags (rules 10 to 13 and 19 to 25)."""
import collections

from oracle import statistics, times
from oracle.effects import time_to_open
from oracle.units import OBSERVING

MANY = 30
"""Suspect states are flagged on more units than this."""
PROMPT_LAUNCH = 60 * times.SECOND
PROMPT_SHARE = 0.02


class Part:
    """What some events of a unit, those in a cell, say about it; the sets of docs/reports.md."""

    def __init__(self, unit, events, today):
        types = {e.type for e in events}
        self.unit = unit
        self.app = unit.app
        self.is_loud = not unit.is_silent
        self.sent = "sent" in types
        self.failed = "failed" in types
        self.observed = not types.isdisjoint(OBSERVING)
        self.clicks = sum(map(today.is_click, events))
        self.click = self.clicks > 0
        self.buttons = {(e.category_id, e.action_id) for e in events if e.type == "action"}
        self.action = "action" in types
        self.dismissed = "dismissed" in types
        self.inbox = "inbox_open" in types
        self.late = sum(e.is_late for e in events)
        self.delivered = \
            self.observed or self.click or self.action or self.dismissed or self.inbox
        self.accepted = self.sent and (not self.failed or self.delivered)
        self.engaged = self.click or self.action or self.inbox or "confirmed" in types
        self.influenced = self.delivered and unit.influencing_launch is not None
        self.converted = self.click and unit.is_converted
        self.prompt = self.influenced \
            and unit.influencing_launch - unit.shown_at <= PROMPT_LAUNCH
        # Time to open is of the first click, and is where that is.
        is_opened_here = bool(unit.clicks) and any(e is unit.clicks[0] for e in events)
        self.time_to_open = time_to_open(unit) if is_opened_here else None
        self.is_receipt_biased = any(
            e.type == "received" and e.platform == "ios" and e.word.lower() == "push_receive"
            for e in events)


def rate(numerator, denominator):
    """A rate with its Wilson interval; n/a where the denominator is zero or unknown."""
    found = {"numerator": numerator, "denominator": denominator}
    if numerator is None or not denominator:
        return found | {"value": None, "low": None, "high": None}
    low, high = statistics.wilson(numerator, denominator)
    return found | {"value": numerator / denominator, "low": low, "high": high}


def row(parts, sending, include_test, is_sending_if_empty=True):
    """Counts, rates and flags of the parts; `sending` are the apps that ever logged a `sent`."""
    counted = [p for p in parts if include_test or not p.unit.is_test]
    loud = [p for p in counted if p.is_loud]
    scope = counted or parts
    is_sent_known = is_sending_if_empty if not scope else all(
        p.app in sending and not p.unit.sent_unknown for p in scope)
    is_failed_known = not any(p.unit.failed_unknown for p in counted)
    is_accepted_known = is_sent_known and is_failed_known

    def count(test, among=counted, known=True):
        return sum(1 for p in among if test(p)) if known else None

    opened = sorted(p.time_to_open for p in counted
                    if p.time_to_open is not None and p.time_to_open >= 0)
    counts = {
        "sent": count(lambda p: p.sent, known=is_sent_known),
        "failed": count(lambda p: p.failed, known=is_failed_known),
        "accepted": count(lambda p: p.accepted, known=is_accepted_known),
        "observed": count(lambda p: p.observed),
        "delivered": count(lambda p: p.delivered),
        "implied": count(lambda p: p.delivered and not p.observed),
        "clicked": count(lambda p: p.click),
        "clicks_total": sum(p.clicks for p in counted),
        "actions": count(lambda p: p.action),
        "dismissed": count(lambda p: p.dismissed),
        "inbox_opened": count(lambda p: p.inbox),
        "engaged": count(lambda p: p.engaged),
        "influenced": count(lambda p: p.influenced),
        "converted": count(lambda p: p.converted),
        "test_excluded": len(parts) - len(counted),
        "late": sum(p.late for p in counted),
        "clicks_without_send":
            count(lambda p: p.click and not p.sent, known=is_sent_known),
        "failed_but_clicked": count(lambda p: p.click and p.failed, known=is_failed_known),
        "clicks_before_receipts": count(
            lambda p: p.time_to_open is not None and p.time_to_open < 0),
    }
    delivered = count(lambda p: p.delivered, loud)
    rates = {
        "delivery_rate": rate(
            count(lambda p: p.delivered and p.sent, known=is_sent_known), counts["sent"]),
        "ctr_delivered": rate(count(lambda p: p.click, loud), delivered),
        "ctr_sent": rate(
            count(lambda p: p.click and p.sent, loud, is_sent_known),
            count(lambda p: p.sent, loud, is_sent_known)),
        "ctr_accepted": rate(
            count(lambda p: p.click and p.accepted, loud, is_accepted_known),
            count(lambda p: p.accepted, loud, is_accepted_known)),
        "engagement_rate": rate(count(lambda p: p.engaged, loud), delivered),
        "dismiss_rate": rate(count(lambda p: p.dismissed and not p.click, loud), delivered),
        "influenced_rate": rate(count(lambda p: p.influenced, loud), delivered),
        "conversion_rate": rate(count(lambda p: p.converted, loud), delivered),
    }
    return {
        **counts, **rates,
        "action_share": _action_shares(loud),
        "time_to_open": {
            name: statistics.percentile(opened, fraction) / times.SECOND
            for name, fraction in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        } if opened else None,
        "flags": _flags(counted, loud, counts, rates),
    }


def _action_shares(loud):
    units = collections.Counter(button for p in loud for button in p.buttons)
    actions = sum(p.action for p in loud)
    return [
        {"category_id": category, "action_id": action, **rate(n, actions)}
        for (category, action), n in sorted(units.items(), key=lambda item: (
            -item[1], [(name is None, (name or "").encode()) for name in item[0]]))]


def _flags(counted, loud, counts, rates):
    """Names in alphabetical order."""
    flags = set()
    click_through = rates["ctr_delivered"]
    delivered = click_through["denominator"]
    if any(p.unit.campaign_mismatch for p in counted):
        flags.add("campaign_mismatch")
    if counts["clicks_before_receipts"]:
        flags.add("clicks_before_receipts")
    if delivered > MANY and click_through["numerator"] == delivered:
        flags.add("ctr_100_percent")
    if any(p.is_receipt_biased for p in counted):
        flags.add("receipt_biased")
    if any(p.unit.sent_unknown for p in counted):
        flags.add("sent_without_device")
    prompt = sum(p.prompt for p in loud)
    if delivered > MANY and click_through["numerator"] == 0 \
            and prompt >= PROMPT_SHARE * delivered:
        flags.add("taps_not_forwarded")
    return sorted(flags)


def flag_drops(rows, names):
    """Adds `ctr_drop` to rows of an app version far below the version before it (rule 25)."""
    series = collections.defaultdict(list)
    others = [name for name in names if name != "app_version"]
    for each in rows:
        if each["app_version"] is not None \
                and each["ctr_delivered"]["denominator"] > MANY:
            series[tuple(each[name] for name in others)].append(each)
    for members in series.values():
        members.sort(key=lambda r: (version(r["app_version"]), r["app_version"]))
        for before, after in zip(members, members[1:]):
            if _is_drop(before["ctr_delivered"], after["ctr_delivered"]):
                after["flags"] = sorted({*after["flags"], "ctr_drop"})


def _is_drop(before, after):
    if after["value"] >= before["value"] / 2:
        return False
    found = statistics.compare(after["numerator"], after["denominator"],
                               before["numerator"], before["denominator"])
    return found["verdict"] and found["p"] < 0.05


def version(text):
    """The numbers in a version, as a list: 5.10 is after 5.9."""
    digits = "".join(c if c in "0123456789" else " " for c in text)
    return [int(number) for number in digits.split()]
