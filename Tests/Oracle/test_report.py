"""One test for each row of the table of a report's cases, and for each set and rate."""
import unittest
from zoneinfo import ZoneInfo

from hand import event, fraction, of, table, totals
from oracle import times


class Sets(unittest.TestCase):
    def test_by_hand(self):
        """
        Ten messages; - is nothing.

            m0  sent received                m5  sent failed
            m1  sent received clicked        m6  sent failed clicked
            m2  sent dismissed               m7  clicked
            m3  sent dismissed clicked       m8  sent confirmed
            m4  action (no app)              m9  sent inbox_open
        """
        stories = ["sent received", "sent received clicked", "sent dismissed",
                   "sent dismissed clicked", "action", "sent failed", "sent failed clicked",
                   "clicked", "sent confirmed", "sent inbox_open"]
        found = totals([event(kind, f"m{i}") for i, story in enumerate(stories)
                        for kind in story.split()])
        self.assertEqual(
            {name: found[name] for name in (
                "sent", "failed", "accepted", "observed", "delivered", "implied", "clicked",
                "actions", "dismissed", "inbox_opened", "engaged", "clicks_without_send",
                "failed_but_clicked")},
            {"sent": 8, "failed": 2, "accepted": 7, "observed": 3, "delivered": 9, "implied": 6,
             "clicked": 4, "actions": 1, "dismissed": 2, "inbox_opened": 1, "engaged": 7,
             "clicks_without_send": 1, "failed_but_clicked": 1})
        self.assertEqual(
            {name: fraction(found[name]) for name in (
                "delivery_rate", "ctr_delivered", "ctr_sent", "ctr_accepted", "engagement_rate",
                "dismiss_rate")},
            {"delivery_rate": (7, 8), "ctr_delivered": (4, 9), "ctr_sent": (3, 8),
             "ctr_accepted": (3, 7), "engagement_rate": (7, 9), "dismiss_rate": (1, 9)})
        self.assertAlmostEqual(found["ctr_delivered"]["value"], 4 / 9)

    def test_displayed_and_consumed_deliver_and_do_not_engage(self):
        found = totals([event("displayed"), event("consumed", "n")])
        self.assertEqual((found["observed"], found["engaged"], found["clicked"]), (2, 0, 0))

    def test_action_shares_are_per_category_and_button(self):
        found = totals([
            event("action", category_id="c", action_id="a", event_uid="1"),
            event("action", category_id="c", action_id="a", event_uid="2", seconds=1),
            event("action", category_id="c", action_id="b"),
            event("action", "n", category_id="e", action_id="a"), event("action", "o")])
        self.assertEqual(
            [(s["category_id"], s["action_id"], *fraction(s)) for s in found["action_share"]],
            [("c", "a", 1, 3), ("c", "b", 1, 3), ("e", "a", 1, 3), (None, None, 1, 3)])


class Cases(unittest.TestCase):
    def test_click_without_receipt(self):
        found = totals([event("clicked")])
        self.assertEqual((found["observed"], found["implied"], found["delivered"]), (0, 1, 1))

    def test_click_without_a_send_record(self):
        found = totals([event("sent"), event("clicked", "n")])
        self.assertEqual(fraction(found["ctr_sent"]), (0, 1))
        self.assertEqual(fraction(found["ctr_delivered"]), (1, 1))
        self.assertEqual(found["clicks_without_send"], 1)

    def test_failed_then_clicked(self):
        found = totals([event("sent"), event("failed"), event("clicked", seconds=9)])
        self.assertEqual((found["accepted"], found["failed_but_clicked"]), (1, 1))
        self.assertEqual(fraction(found["ctr_accepted"]), (1, 1))
        # Any evidence of delivery will do, but not without a sent.
        for kind, accepted in [("received", 1), ("dismissed", 1), ("inbox_read", 0)]:
            found = totals([event("sent"), event("failed"), event(kind)])
            self.assertEqual(found["accepted"], accepted, kind)
        self.assertEqual(
            totals([event("sent", "n"), event("failed"), event("received")])["accepted"], 1)

    def test_an_app_that_never_logs_a_sent(self):
        events = [event("sent", campaign_id="a"), event("received", "n", campaign_id="b"),
                  event("clicked", app="games", campaign_id="c")]
        self.assertEqual(
            sorted(table(events, "campaign", "sent", "accepted", "clicks_without_send")),
            [("a", 1, 1, 0), ("b", 0, 0, 0), ("c", None, None, None)])
        found = totals(events)
        self.assertEqual((found["sent"], found["failed"]), (None, 0))
        self.assertEqual(fraction(found["ctr_sent"]), (None, None))
        self.assertEqual(totals(events, app="shop")["sent"], 1)
        # A test unit of such an app hides nothing.
        events[2]["event"]["is_test"] = True
        self.assertEqual(totals(events)["sent"], 1)
        self.assertIsNone(totals(events, include_test=True)["sent"])

    def test_an_empty_report(self):
        found = of([])
        self.assertEqual(found["campaigns"], [])
        self.assertEqual((found["totals"]["sent"], found["totals"]["delivered"]), (None, 0))
        self.assertEqual(found["totals"]["ctr_delivered"], {
            "numerator": 0, "denominator": 0, "value": None, "low": None, "high": None})
        self.assertIsNone(found["totals"]["time_to_open"])
        self.assertIsNone(found["as_of"])

    def test_zero_denominators_are_not_zero_percent(self):
        found = totals([event("sent")])
        self.assertIsNone(found["ctr_delivered"]["value"])
        self.assertEqual(found["delivery_rate"]["value"], 0)

    def test_late_is_more_than_a_day(self):
        day = 86_400
        events = [event("received", seconds=0, received=day),
                  event("clicked", seconds=0, received=day + 0.000001),
                  event("launch", None, seconds=0, received=9 * day)]
        self.assertEqual(totals(events)["late"], 1)

    def test_as_of_knows_what_was_loaded_by_then(self):
        events = [event("sent", stored=10), event("received", stored=20),
                  event("clicked", stored=30)]
        found = of(events, as_of="2026-06-01T12:00:20Z")
        self.assertEqual((found["totals"]["delivered"], found["totals"]["clicked"]), (1, 0))
        self.assertEqual(found["as_of"], "2026-06-01T12:00:20Z")
        self.assertEqual(of(events, as_of="2027-01-01T00:00:00Z")["as_of"], "2026-06-01T12:00:30Z")
        self.assertIsNone(totals(events, as_of="2026-06-01T12:00:09Z")["sent"])


class Period(unittest.TestCase):
    NIGHT = "2026-06-02T00:00:00Z"
    # Sent a second before midnight of 2 June, clicked at midnight.
    EVENTS = [event("sent", seconds=43_199), event("clicked", seconds=43_200)]

    def test_the_cohort_is_first_seen_in_it_with_all_that_came_later(self):
        found = of(self.EVENTS, end=self.NIGHT)
        self.assertEqual((found["totals"]["sent"], found["totals"]["clicked"]), (1, 1))
        self.assertEqual((found["cohort"], found["to"]), ("first_seen", self.NIGHT))
        self.assertEqual(of(self.EVENTS, start=self.NIGHT)["campaigns"], [])

    def test_the_activity_is_what_happened_in_it(self):
        found = of(self.EVENTS, end=self.NIGHT, by_activity=True)
        self.assertEqual((found["totals"]["sent"], found["totals"]["clicked"]), (1, 0))
        self.assertEqual(found["cohort"], "activity")
        found = totals(self.EVENTS, start=self.NIGHT, by_activity=True)
        self.assertEqual((found["sent"], found["clicked"], found["delivered"]), (0, 1, 1))
        self.assertEqual(fraction(found["ctr_sent"]), (0, 0))

    def test_first_seen_is_the_sent_even_after_other_events(self):
        events = [event("received"), event("sent", seconds=43_200)]
        self.assertEqual(totals(events, start=self.NIGHT)["observed"], 1)

    def test_days_of_the_cohort_and_of_the_activity(self):
        self.assertEqual(table(self.EVENTS, "day", "sent", "clicked"), [("2026-06-01", 1, 1)])
        self.assertEqual(table(self.EVENTS, "day", "sent", "clicked", by_activity=True),
                         [("2026-06-01", 1, 0), ("2026-06-02", 0, 1)])

    def test_a_unit_in_several_rows_is_once_in_the_totals(self):
        events = [event("clicked", event_uid=str(i), seconds=i * 86_400) for i in range(3)]
        found = of(events, by=["day"], by_activity=True)
        self.assertEqual([row["clicked"] for row in found["campaigns"]], [1, 1, 1])
        self.assertEqual((found["totals"]["clicked"], found["totals"]["clicks_total"]), (1, 3))

    def test_half_hours(self):
        events = [event("received", seconds=6 * 3600 + 1799),
                  event("received", "n", seconds=6 * 3600 + 1800)]
        self.assertEqual(
            table(events, "day,hour", "delivered", zone="Asia/Kolkata"),
            [("2026-06-01", "2026-06-01T23:00+05:30", 1),
             ("2026-06-02", "2026-06-02T00:00+05:30", 1)])


class Clocks(unittest.TestCase):
    def hours(self, start, zone):
        """The labels of the hours of a day, by one message every quarter of an hour."""
        day = [int(part) for part in start.split("-")]
        first = times.midnight(*day, ZoneInfo(zone))
        last = times.midnight(day[0], day[1], day[2] + 1, ZoneInfo(zone))
        events = [
            {"app": "shop", "received_at": times.text(time),
             "event": {"type": "received", "message_uid": str(time),
                       "occurred_at": times.text(time)}}
            for time in range(first - times.HOUR, last + times.HOUR, times.HOUR // 4)]
        found = table(events, "hour", "delivered", zone=zone, start=times.text(first),
                      end=times.text(last))
        self.assertEqual({count for _, count in found}, {4})
        self.assertEqual(len(table(events, "day", "delivered", zone=zone, start=times.text(first),
                                   end=times.text(last))), 1)
        return [label for label, _ in found]

    def test_days_of_23_and_25_hours(self):
        hours = self.hours("2026-03-29", "Europe/Berlin")
        self.assertEqual(len(hours), 23)
        self.assertEqual(hours[1:3], ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"])
        hours = self.hours("2026-10-25", "Europe/Berlin")
        self.assertEqual(len(hours), 25)
        # Text sorts the later of two equal hours first here.
        self.assertEqual(hours[2:4], ["2026-10-25T02:00+01:00", "2026-10-25T02:00+02:00"])
        self.assertEqual(len(self.hours("2026-03-08", "America/New_York")), 23)
        self.assertEqual(len(self.hours("2026-11-01", "America/New_York")), 25)
        self.assertEqual(len(self.hours("2026-03-29", "Asia/Kolkata")), 24)


class Flags(unittest.TestCase):
    def many(self, n, *kinds, **more):
        return [event(kind, f"{kinds}{i}", f"d{i}", **more) for i in range(n) for kind in kinds]

    def test_everybody_clicked(self):
        self.assertEqual(totals(self.many(30, "clicked"))["flags"], [])
        self.assertEqual(totals(self.many(31, "clicked"))["flags"], ["ctr_100_percent"])

    def test_clicks_before_receipts(self):
        found = totals([event("received", seconds=1), event("clicked")])
        self.assertEqual(
            (found["flags"], found["clicks_before_receipts"], found["time_to_open"]),
            (["clicks_before_receipts"], 1, None))

    def test_receipt_biased(self):
        for word, platform, flags in [("PUSH_RECEIVE", "iOS", ["receipt_biased"]),
                                      ("push_receive", "android", []), ("received", "ios", [])]:
            self.assertEqual(totals([event(word, platform=platform)])["flags"], flags)

    def test_taps_that_are_not_forwarded(self):
        received = self.many(31, "received")
        launch = event("launch", None, "d7", seconds=60)
        self.assertEqual(totals(received + [launch])["flags"], ["taps_not_forwarded"])
        self.assertEqual(totals(received)["flags"], [])
        self.assertEqual(totals(received[1:] + [launch])["flags"], [])
        late = event("launch", None, "d7", seconds=60.000001)
        self.assertEqual(totals(received + [late])["flags"], [])
        self.assertEqual(totals(received + [launch, event("clicked", "x", "e")])["flags"], [])

    def test_a_version_that_lost_its_clicks(self):
        events = []
        for version, clicks in [("5.9", 40), ("5.10", 38), ("5.11", 5)]:
            events += [event("received", f"{version}-{i}", app_version=version)
                       for i in range(100)]
            events += [event("clicked", f"{version}-{i}", seconds=9) for i in range(clicks)]
        self.assertEqual(
            sorted((row[0], row[1]) for row in table(events, "app_version", "flags")),
            [("5.10", []), ("5.11", ["ctr_drop"]), ("5.9", [])])
        self.assertEqual(totals(events)["flags"], [])


if __name__ == "__main__":
    unittest.main()
