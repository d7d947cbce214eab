"""What belongs to a unit: devices, inbox, campaigns, dimensions, test and silent (rules 1 to 9)."""
import unittest

from hand import event, fraction, of, table, totals
from oracle import lines


class Devices(unittest.TestCase):
    def test_an_event_without_device_is_of_the_only_one_in_any_order(self):
        sent = event("sent", device=None, campaign_id="a")
        for order in (1, -1):
            found = totals([sent, event("received")][::order])
            self.assertEqual((found["sent"], found["delivered"], found["flags"]), (1, 1, []))

    def test_with_several_devices_sent_is_unknown(self):
        found = totals([event("sent", device=None), event("received"),
                        event("clicked", device="e")])
        self.assertEqual((found["sent"], found["accepted"], found["failed"]), (None, None, 0))
        self.assertEqual(fraction(found["ctr_delivered"]), (1, 2))
        self.assertEqual(found["flags"], ["sent_without_device"])

    def test_with_several_devices_failed_is_unknown_too(self):
        found = totals([event("sent"), event("failed", device=None),
                        event("received", device="e")])
        self.assertEqual([found[name] for name in ("sent", "failed", "failed_but_clicked")],
                         [None] * 3)

    def test_other_events_without_device_are_one_unit_then(self):
        found = totals([event("received"), event("received", device="e"),
                        event("clicked", device=None), event("dismissed", device=None)])
        self.assertEqual((found["delivered"], found["clicked"], found["dismissed"]), (3, 1, 1))

    def test_events_that_name_no_device_are_one_unit(self):
        found = totals([event("received", device=None), event("clicked", device=None)])
        self.assertEqual((found["delivered"], found["clicked"]), (1, 1))

    def test_apps_share_nothing(self):
        rows = table([event("sent", campaign_id="a"), event("clicked", app="news"),
                      event("clicked", "n", app="news", campaign_id="a")],
                     "campaign", "app", "delivered", "clicked")
        self.assertEqual(sorted(rows), [
            ("(unattributed)", "news", 1, 1), ("a", "news", 1, 1), ("a", "shop", 0, 0)])


class Inbox(unittest.TestCase):
    def test_it_joins_the_push_that_names_it_by_either_id(self):
        push = event("received", inbox_message_uid="i", campaign_id="a")
        for own in [event("inbox_open", "i"), event("inbox_open", None, inbox_message_uid="i"),
                    event("inbox_open", "x", inbox_message_uid="i"), event("inbox_open", "m")]:
            self.assertEqual(
                table([push, own], "campaign", "delivered", "inbox_opened"), [("a", 1, 1)])

    def test_not_on_another_device_nor_through_another_inbox_event(self):
        self.assertEqual(
            totals([event("received", inbox_message_uid="i"),
                    event("inbox_open", "i", device="e")])["delivered"], 2)
        self.assertEqual(
            totals([event("inbox_read", "x", inbox_message_uid="i"),
                    event("inbox_open", "i")])["inbox_opened"], 1)

    def test_of_two_pushes_the_earlier(self):
        self.assertEqual(
            table([event("received", "p2", seconds=1, inbox_message_uid="i", campaign_id="b"),
                   event("received", "p1", inbox_message_uid="i", campaign_id="a"),
                   event("inbox_open", "i", seconds=2)], "campaign", "inbox_opened"),
            [("a", 1), ("b", 0)])

    def test_a_push_without_device_belongs_to_the_device_of_its_message(self):
        found = totals([event("sent", device=None, inbox_message_uid="i"), event("received"),
                        event("inbox_open", "i", seconds=5)])
        self.assertEqual((found["sent"], found["inbox_opened"], found["delivered"]), (1, 1, 1))

    def test_read_and_received_in_the_inbox_deliver_nothing(self):
        found = totals([event("inbox_read"), event("inbox_received"), event("inbox_deleted")])
        self.assertEqual((found["delivered"], found["engaged"]), (0, 0))


class Campaigns(unittest.TestCase):
    def rows(self, *envelopes):
        return table(envelopes, "campaign", "delivered")

    def test_of_the_earliest_sent_before_all_others(self):
        self.assertEqual(
            self.rows(event("received", campaign_id="early"),
                      event("sent", seconds=9, event_uid="2", campaign_id="later"),
                      event("sent", seconds=5, event_uid="1", campaign_id="right")),
            [("right", 1)])

    def test_else_of_the_earliest_event(self):
        self.assertEqual(
            self.rows(event("sent"), event("received", seconds=3), event("clicked", seconds=2),
                      event("dismissed", seconds=1, campaign_id="a")), [("a", 1)])

    def test_else_of_a_sent_of_the_message(self):
        self.assertEqual(
            self.rows(event("sent", device="e", campaign_id="a"), event("received", seconds=-9)),
            [("a", 1)])
        self.assertEqual(
            self.rows(event("received", device="e", campaign_id="a"), event("received")),
            [("(unattributed)", 1), ("a", 1)])

    def test_one_that_becomes_known_later_heals_history(self):
        late = [event("clicked", stored=0), event("sent", seconds=99, stored=200, campaign_id="a")]
        self.assertEqual(table(late, "campaign", "clicked", as_of="2026-06-01T12:03:19Z"),
                         [("(unattributed)", 1)])
        self.assertEqual(table(late, "campaign", "clicked"), [("a", 1)])

    def test_a_mismatch_is_flagged(self):
        self.assertEqual(
            totals([event("sent", campaign_id="a"), event("clicked", campaign_id="b")])["flags"],
            ["campaign_mismatch"])

    def test_only_the_campaign_asked_for(self):
        events = [event("clicked", campaign_id="a"), event("clicked", "n"),
                  event("clicked", "m", app="news", campaign_id="a")]
        self.assertEqual(totals(events, campaign="a")["clicked"], 2)
        self.assertEqual(totals(events, campaign="(unattributed)")["clicked"], 1)
        self.assertEqual(totals(events, campaign="a", app="news")["app"], "news")


class Dimensions(unittest.TestCase):
    def test_of_the_earliest_event_that_carries_one(self):
        events = [event("sent"), event("clicked", seconds=9, locale="en", country="DE"),
                  event("received", seconds=3, locale="de", platform="iOS")]
        for name, value in [("locale", "de"), ("country", "DE"), ("platform", "ios"),
                            ("provider", None)]:
            for by_activity in (False, True):
                self.assertEqual(
                    table(events, name, "sent", "clicked", by_activity=by_activity),
                    [(value, 1, 1)])

    def test_else_as_the_device_is_registered(self):
        devices = [{"app": "shop", "device_id": "d", "country": "IN", "push_group": "vip",
                    "topics": ["b", "a"]}]
        events = [event("received"), event("received", "n", country="DE", push_group="beta",
                                           topic="t")]
        self.assertEqual(table(events, "country,push_group", "delivered", today=(devices,)),
                         [("DE", "beta", 1), ("IN", "vip", 1)])
        found = of(events, (devices,), by=["topic"])
        self.assertEqual([(row["topic"], row["delivered"]) for row in found["campaigns"]],
                         [("a", 1), ("b", 1), ("t", 1)])
        self.assertEqual(found["totals"]["delivered"], 2)

    def test_numbers_and_empty_texts_are_no_groups(self):
        events = [event("received", push_group=7, topic=""),
                  event("clicked", seconds=1, properties={"push_group": "vip", "topic": "t"})]
        self.assertEqual(table(events, "push_group,topic", "clicked"), [("vip", "t", 1)])

    def test_category_is_of_the_unit_and_type_and_action_of_the_event(self):
        events = [event("received"),
                  event("action", action_id="buy", category_id="c", opens_app=True),
                  event("action", action_id="later"), event("Viewed", seconds=5)]
        self.assertEqual(table(events, "category", "observed", "actions"), [("c", 1, 1)])
        self.assertEqual(
            sorted(table(events, "type", "observed", "clicked", "actions", "delivered")),
            [("Viewed", 0, 0, 0, 0), ("action", 0, 1, 1, 1), ("received", 1, 0, 0, 1)])
        self.assertEqual(
            table(events, "action", "observed", "clicked", "actions", "delivered"),
            [("buy", 0, 1, 1, 1), ("later", 0, 0, 1, 1), (None, 1, 0, 0, 1)])
        self.assertEqual(totals(events, by=["action"])["delivered"], 1)

    def test_ties_go_to_the_smaller_identity(self):
        events = [event("received", locale="a"), event("displayed", locale="b")]
        smaller = min(map(lines.event_of, events), key=lambda e: e.key)
        for order in (1, -1):
            self.assertEqual(table(events[::order], "locale", "delivered"), [(smaller.locale, 1)])


class TestAndSilent(unittest.TestCase):
    def test_a_unit_is_test_by_one_event_or_by_its_mark(self):
        events = [event("received"), event("clicked", is_test=True),
                  event("received", "n", "marked"), event("received", "o", "other"),
                  event("received", "n", "marked", app="news")]
        marks = ((), (), [{"app": "shop", "device_id": "marked"}])
        found = totals(events, marks)
        self.assertEqual((found["delivered"], found["clicked"], found["test_excluded"]), (2, 0, 2))
        found = totals(events, marks, include_test=True)
        self.assertEqual((found["delivered"], found["clicked"], found["test_excluded"]), (4, 1, 0))

    def test_silent_units_are_in_counts_and_in_no_rate_but_delivery(self):
        found = totals([
            event("sent"), event("received"), event("clicked", seconds=1, silent=True),
            event("action", seconds=1, action_id="a"),
            event("sent", "n"), event("received", "n")])
        self.assertEqual((found["delivered"], found["clicked"], found["actions"]), (2, 1, 1))
        self.assertEqual(fraction(found["delivery_rate"]), (2, 2))
        for name in ("ctr_delivered", "ctr_sent", "ctr_accepted", "engagement_rate",
                     "dismiss_rate", "influenced_rate", "conversion_rate"):
            self.assertEqual(fraction(found[name]), (0, 1), name)
        self.assertEqual(found["action_share"], [])


class Buttons(unittest.TestCase):
    def test_the_event_says_or_the_table_or_it_is_no_click(self):
        table_ = [{"app": "shop", "category_id": "c", "action_id": "a", "opens_app": True}]
        cases = [({"category_id": "c", "action_id": "a"}, 1),
                 ({"category_id": "c", "action_id": "a", "opens_app": False}, 0),
                 ({"category_id": "c", "action_id": "b", "opens_app": True}, 1),
                 ({"category_id": "c", "action_id": "b"}, 0), ({"action_id": "a"}, 0)]
        for more, clicked in cases:
            found = totals([event("button", **more)], ((), table_))
            self.assertEqual((found["clicked"], found["clicks_total"], found["actions"],
                              found["engaged"], found["delivered"]), (clicked, clicked, 1, 1, 1))


if __name__ == "__main__":
    unittest.main()
