"""Influenced and converted units and time to open (rules 14 to 20)."""
import random
import unittest

from hand import event, fraction, of, table, totals
from oracle import effects, events, lines, times, units
from oracle.today import Today

HOUR = 3600
DAY = 24 * HOUR
TINY = 0.000001


def launch(seconds, device="d", **more):
    return event("launch", None, device, seconds, **more)


def convert(seconds, device="d", **more):
    return event("conversion", None, device, seconds, **more)


class Influenced(unittest.TestCase):
    def count(self, *envelopes):
        return totals(envelopes)["influenced"]

    def test_the_window(self):
        for seconds, expected in [
                (-1, 0), (0, 0), (TINY, 1), (12 * HOUR, 1), (12 * HOUR + TINY, 0)]:
            self.assertEqual(self.count(event("received"), launch(seconds)), expected, seconds)

    def test_it_begins_when_it_was_seen_else_when_it_was_sent(self):
        sent, dismissed = event("sent", seconds=-HOUR), event("dismissed", seconds=2 * HOUR)
        self.assertEqual(self.count(sent, dismissed, launch(-60)), 1)
        self.assertEqual(self.count(sent, dismissed, event("received"), launch(-60)), 0)
        self.assertEqual(self.count(dismissed, launch(3 * HOUR)), 0)
        self.assertEqual(self.count(sent, launch(60)), 0)

    def test_never_a_unit_that_was_clicked(self):
        self.assertEqual(
            self.count(event("received"), launch(60), event("clicked", seconds=HOUR)), 0)

    def test_launches_near_a_click_of_the_device_do_not_count(self):
        other = [event("received", "n", seconds=-HOUR), event("clicked", "n", seconds=60)]
        for seconds, expected in [(55 - TINY, 1), (55, 0), (60, 0), (65, 0), (65 + TINY, 1)]:
            self.assertEqual(
                self.count(event("received"), *other, launch(seconds)), expected, seconds)
        # The next one does.
        self.assertEqual(self.count(event("received"), *other, launch(60), launch(90)), 1)
        action = event("action", "n", seconds=60, opens_app=True)
        self.assertEqual(self.count(event("received"), action, launch(60)), 0)

    def test_a_newer_message_takes_it(self):
        received = event("received", campaign_id="old")
        for newer, expected in [
            (event("received", "n", seconds=30, campaign_id="new"), [("new", 1), ("old", 0)]),
            (event("received", "n", seconds=60, campaign_id="new"), [("new", 0), ("old", 1)]),
            (event("received", "n", seconds=0, campaign_id="new"), [("new", 1), ("old", 1)]),
            (event("sent", "n", seconds=30, campaign_id="new"), [("new", 0), ("old", 1)]),
            (event("received", "n", "e", seconds=30, campaign_id="new"), [("new", 0), ("old", 1)]),
            (event("received", "n", seconds=30, campaign_id="new", is_test=True),
             [("new", 0), ("old", 0)]),
        ]:
            rows = table([received, newer, launch(60)], "campaign", "influenced")
            self.assertEqual(sorted(rows), expected, newer)
        silent = event("received", "n", seconds=30, silent=True)
        self.assertEqual(self.count(received, silent, launch(60)), 2)

    def test_messages_that_are_not_asked_for_still_take_what_is_theirs(self):
        events = [event("received", campaign_id="a"), launch(60), convert(90),
                  event("received", "n", seconds=30, campaign_id="b"),
                  event("clicked", "o", seconds=40, campaign_id="a"),
                  event("clicked", "p", seconds=80, campaign_id="b")]
        found = totals(events, campaign="a")
        self.assertEqual((found["influenced"], found["converted"]), (0, 0))
        found = totals(events, campaign="b")
        self.assertEqual((found["influenced"], found["converted"]), (1, 1))
        found = totals([e for e in events if e["event"].get("campaign_id") != "b"], campaign="a")
        self.assertEqual((found["influenced"], found["converted"]), (1, 1))
        found = totals(events, end="2026-06-01T12:00:20Z")
        self.assertEqual(found["influenced"], 0)

    def test_only_the_first_launch_counts(self):
        # After the newer message there is a launch, but that of the older one came before it.
        newer = event("received", "n", seconds=60)
        self.assertEqual(self.count(event("received"), launch(30), newer, launch(90)), 2)

    def test_whose_launch_it_is(self):
        received = event("received")
        self.assertEqual(self.count(received, launch(60, "e")), 0)
        self.assertEqual(self.count(received, launch(60, app="news")), 0)
        self.assertEqual(self.count(received, event("launch", "m", None, 60)), 1)
        self.assertEqual(self.count(event("received", device=None),
                                    event("launch", "m", None, 60)), 0)

    def test_a_launch_that_names_a_message_is_an_event_of_its_unit(self):
        self.assertEqual(table([event("launch", campaign_id="a")], "campaign", "delivered"),
                         [("a", 0)])
        self.assertEqual(of([launch(0)])["campaigns"], [])

    def test_rate_and_view_by_activity(self):
        night = 13 * HOUR
        events = [event("received"), event("received", "n", "e"), launch(60),
                  event("inbox_open", seconds=night)]
        self.assertEqual(fraction(totals(events)["influenced_rate"]), (1, 2))
        self.assertEqual(
            table(events, "day", "influenced", "delivered", by_activity=True),
            [("2026-06-01", 1, 2), ("2026-06-02", 1, 1)])
        self.assertEqual(totals(events, by_activity=True)["influenced"], 1)


class Converted(unittest.TestCase):
    def count(self, *envelopes):
        return totals(envelopes)["converted"]

    def test_the_window(self):
        for seconds, expected in [(-TINY, 0), (0, 1), (DAY, 1), (DAY + TINY, 0)]:
            self.assertEqual(self.count(event("clicked"), convert(seconds)), expected, seconds)

    def test_the_last_touch_has_it(self):
        first, second = event("clicked", campaign_id="a"), \
            event("clicked", "n", seconds=60, campaign_id="b")
        for conversions, expected in [
            ([61], [("a", 0), ("b", 1)]), ([59], [("a", 1), ("b", 0)]),
            ([59, 61], [("a", 1), ("b", 1)]), ([DAY + 61], [("a", 0), ("b", 0)]),
        ]:
            rows = table([first, second, *map(convert, conversions)], "campaign", "converted")
            self.assertEqual(sorted(rows), expected, conversions)

    def test_a_later_click_of_the_same_unit_opens_the_window_again(self):
        clicks = [event("clicked", event_uid="1"), event("clicked", seconds=DAY, event_uid="2")]
        self.assertEqual(self.count(*clicks, convert(2 * DAY)), 1)

    def test_a_button_that_opens_the_app_is_a_touch_and_another_is_none(self):
        self.assertEqual(self.count(event("action", opens_app=True), convert(60)), 1)
        self.assertEqual(self.count(event("action"), event("received"), convert(60)), 0)

    def test_whose_conversion_it_is(self):
        click = event("clicked")
        self.assertEqual(self.count(click, convert(60, "e")), 0)
        self.assertEqual(self.count(click, convert(60, app="news")), 0)
        self.assertEqual(self.count(click, event("conversion", "m", None, 60)), 1)
        self.assertEqual(self.count(click, event("conversion", "other", "d", 60)), 1)
        self.assertEqual(self.count(event("clicked", device=None), convert(60)), 0)

    def test_by_activity_it_is_where_the_click_is(self):
        events = [event("received", seconds=-DAY), event("clicked"), convert(DAY)]
        self.assertEqual(
            table(events, "day", "delivered", "clicked", "converted", by_activity=True),
            [("2026-05-31", 1, 0, 0), ("2026-06-01", 1, 1, 1)])
        self.assertEqual(fraction(totals(events)["conversion_rate"]), (1, 1))


class TimeToOpen(unittest.TestCase):
    def test_percentiles_and_negatives(self):
        events = []
        for index, seconds in enumerate([10, 20, 30, 40, -5]):
            events += [event("received", f"m{index}"),
                       event("clicked", f"m{index}", seconds=seconds)]
        found = totals(events)
        self.assertEqual(found["clicks_before_receipts"], 1)
        for name, expected in [("p50", 25), ("p90", 37), ("p99", 39.7)]:
            self.assertAlmostEqual(found["time_to_open"][name], expected, 9)

    def test_a_clock_that_is_wrong_cancels(self):
        # The clock of the device is an hour fast; the click is sent later than the receipt.
        events = [event("received", seconds=3600, received=0, sent_at="2026-06-01T13:00:00Z"),
                  event("clicked", seconds=3630, received=90, sent_at="2026-06-01T13:01:30Z")]
        self.assertEqual(totals(events)["time_to_open"]["p50"], 30)

    def test_only_of_first_events_with_a_time_that_is_believed(self):
        received, clicked = event("received"), event("clicked", seconds=9)
        for missing in (received, clicked):
            events = [received, clicked]
            other = missing | {"event": missing["event"] | {"occurred_at": 0}}
            events[events.index(missing)] = other
            self.assertIsNone(totals(events)["time_to_open"])
        self.assertIsNone(totals([clicked])["time_to_open"])
        none = [e | {"event": e["event"] | {"device_id": None}} for e in (received, clicked)]
        self.assertIsNone(totals(none)["time_to_open"])

    def test_it_is_where_the_first_click_is(self):
        events = [event("received", seconds=-DAY), event("clicked", event_uid="1"),
                  event("clicked", event_uid="2", seconds=DAY)]
        rows = table(events, "day", "time_to_open", by_activity=True)
        self.assertEqual([(day, t and t["p50"]) for day, t in rows],
                         [("2026-05-31", None), ("2026-06-01", DAY), ("2026-06-02", None)])


class SlowDefinition(unittest.TestCase):
    """The rules as they read, over all pairs, on generated events."""

    def test_influenced_and_converted(self):
        for seed in range(4):
            made = lines.events_of(events.Generator(seed, 1000).envelopes)
            today = Today(categories=events.categories())
            every = units.of(made, today)
            effects.decide(every, made)
            random.Random(seed).shuffle(every)
            devices = {id(e): u.device for u in every for e in u.events}
            of_device = [(e, e.device_id or devices.get(id(e))) for e in made]
            found = [0, 0]
            for unit in every:
                mine = [u for u in every if (u.app, u.device) == (unit.app, unit.device)]
                own = [e for e, device in of_device
                       if e.app == unit.app and device == unit.device is not None]
                influenced = self.is_influenced(unit, mine, own)
                converted = self.is_converted(unit, mine, own)
                self.assertEqual(unit.influencing_launch is not None, influenced)
                self.assertEqual(unit.is_converted, converted)
                found[0] += influenced
                found[1] += converted
            self.assertGreater(min(found), 5)

    def is_influenced(self, unit, mine, own):
        if not unit.is_delivered or unit.clicks or unit.shown_at is None:
            return False
        clicks = [c.time for u in mine for c in u.clicks]
        launches = [e.time for e in own if e.type == "launch" and e.time > unit.shown_at
                    and all(abs(e.time - click) > 5 * times.SECOND for click in clicks)]
        if not launches or min(launches) > unit.shown_at + 12 * times.HOUR:
            return False
        return not any(
            u.is_delivered and not u.is_silent and u.shown_at is not None
            and unit.shown_at < u.shown_at < min(launches) for u in mine)

    def is_converted(self, unit, mine, own):
        clicks = [c for u in mine for c in u.clicks]
        for conversion in (e.time for e in own if e.type == "conversion"):
            before = [c for c in clicks if c.time <= conversion]
            if before:
                last = max(before, key=lambda c: c.order)
                if last in unit.clicks and conversion - last.time <= 24 * times.HOUR:
                    return True
        return False


if __name__ == "__main__":
    unittest.main()
