#!/usr/bin/env python3
"""Tests of the oracle on tables computed by hand."""
import json
import unittest

import recompute

RECEIVED = recompute.instant("2026-11-30T00:00:00Z")


def report(*lines, **options):
    events = [recompute.parse_line(json.dumps(line), "shop", RECEIVED) for line in lines]
    return recompute.report(recompute.dedupe(events), **options)


def line(kind, message="m1", device="d1", **more):
    return {"type": kind, "message_uid": message, "device_id": device, **more}


class Lines(unittest.TestCase):
    def test_a_repeat_is_one_event_and_an_event_uid_makes_it_two(self):
        click = line("clicked")
        self.assertEqual(report(click, click)["totals"]["clicks_total"], 1)
        totals = report(click, line("OPEN", event_uid="A"), line("click", uuid="A"))["totals"]
        self.assertEqual((totals["clicked"], totals["clicks_total"]), (1, 2))

    def test_a_restamped_retry_is_a_repeat(self):
        first = line("clicked", event_uid="A", occurred_at="2026-11-29T10:00:00Z")
        again = line("clicked", event_uid="A", occurred_at="2026-11-29T11:00:00Z")
        self.assertEqual(report(first, again)["totals"]["clicks_total"], 1)

    def test_uuids_fold_and_numbers_name_campaigns(self):
        uid = "0A000000-0000-4000-8000-00000000000F"
        rows = report(line("sent", uid, campaign_id=7), line("clicked", uid.lower()))["campaigns"]
        self.assertEqual([(r["campaign_id"], r["clicked"]) for r in rows], [("7", 1)])

    def test_lines_without_identity_are_rejected(self):
        for bad in [{"type": "launch"}, {"type": "clicked"}, {"type": ""}, {"message_uid": "m"},
                    {"type": "launch", "occurred_at": "2026-11-29T10:00:00Z"}, [], "x",
                    line("clicked", device="d\0"), line("clicked", "m" * 129)]:
            with self.assertRaises(recompute.Rejected):
                recompute.parse_line(json.dumps(bad), "shop", RECEIVED)

    def test_times_are_corrected_believed_or_replaced(self):
        hour = 3_600_000_000
        for more, expected in [
            ({"occurred_at": "2026-11-29T23:00:00Z"}, RECEIVED - hour),
            ({"occurred_at": 1796000400, "sent_at": 1796004000}, RECEIVED - hour),
            ({"occurred_at": "2026-11-29T23:00:00Z", "sent_at": "2026-11-30T00:00:01Z"},
             RECEIVED - hour),
            ({"occurred_at": "2027-01-01T00:00:00Z"}, RECEIVED),
            ({"occurred_at": -2147483648}, RECEIVED), ({}, RECEIVED),
        ]:
            event = recompute.parse_line(json.dumps(line("clicked", **more)), "shop", RECEIVED)
            self.assertEqual(event["event_time"], expected, more)


class Units(unittest.TestCase):
    def test_sent_without_device_joins_the_only_device_and_is_unknown_between_two(self):
        sent = line("sent", device=None, campaign_id="a")
        totals = report(sent, line("received"))["totals"]
        self.assertEqual((totals["sent"], totals["delivered"]), (1, 1))
        totals = report(sent, line("received"), line("received", device="d2"))["totals"]
        self.assertEqual((totals["sent"], totals["flags"]), (None, ["sent_without_device"]))

    def test_inbox_event_joins_the_push_that_names_it(self):
        rows = report(line("received", inbox_message_uid="i", campaign_id="a"),
                      {"type": "inbox_open", "inbox_message_uid": "i", "device_id": "d1"})
        self.assertEqual([r["engagement_rate"]["value"] for r in rows["campaigns"]], [1.0])

    def test_wilson(self):
        for k, n, low, high in [(0, 10, 0, 0.277533), (10, 10, 0.722467, 1),
                                (37, 1000, 0.026961, 0.050582)]:
            for mine, theirs in zip(recompute.wilson(k, n), (low, high)):
                self.assertAlmostEqual(mine, theirs, 6)


if __name__ == "__main__":
    unittest.main()
