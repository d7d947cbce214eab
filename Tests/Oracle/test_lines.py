"""Lines to events: what is one event, what is none, and when it was."""
import hashlib
import json
import unittest

from hand import NOON, at, event, totals
from oracle import lines, times


def parsed(**line):
    return lines.event_of({"app": "shop", "received_at": at(0), "event": line})


class Fields(unittest.TestCase):
    def test_words_and_spellings(self):
        found = parsed(status="ClickThru", message_uid=7, uuid="A", props={"a": 1}, event_id="B")
        self.assertEqual((found.type, found.message_uid, found.event_uid), ("clicked", "7", "A"))
        self.assertEqual(found.properties, {"a": "1", "event_id": "B"})

    def test_only_uuids_fold_and_platforms(self):
        uid = "0A000000-0000-4000-8000-00000000000F"
        found = parsed(type="clicked", message_uid=uid, event_uid=uid, device_id=uid,
                       inbox_message_uid="ABC", platform="iOS")
        self.assertEqual((found.message_uid, found.event_uid), (uid.lower(), uid.lower()))
        self.assertEqual(
            (found.device_id, found.inbox_message_uid, found.platform), (uid, "ABC", "ios"))

    def test_campaign_of_two_parts(self):
        self.assertEqual(
            parsed(type="sent", message_uid="m", activity_type="a", activity_uid=7).campaign_id,
            "a:7")
        self.assertIsNone(parsed(type="sent", message_uid="m", activity_type="a").campaign_id)

    def test_what_has_no_place_is_a_property(self):
        found = parsed(type="sent", message_uid="m", topic="t", country=["DE"],
                       properties={"topic": "inner"})
        self.assertEqual(
            found.properties, {"topic": "inner", "top.topic": "t", "country": ["DE"]})

    def test_rejected(self):
        for bad in [{"type": "launch"}, {"type": "clicked"}, {"type": ""}, {"message_uid": "m"},
                    {"type": "launch", "occurred_at": at(0)},
                    {"type": "clicked", "message_uid": "m" * 129},
                    {"type": "clicked", "message_uid": "m", "device_id": "d\0"},
                    {"type": "clicked", "message_uid": 1.5}, {"type": "a b", "message_uid": "m"},
                    {"type": "clicked", "message_uid": "m", "silent": "yes"}]:
            with self.assertRaises(lines.Rejected, msg=bad):
                parsed(**bad)


class Identity(unittest.TestCase):
    def test_it_is_the_hash_that_the_document_says(self):
        # sha256 of 02, "shop", "d", "clicked", "m" with their lengths, and an absent action.
        text = b"\x02" + b"".join(
            len(f).to_bytes(4, "big") + f for f in (b"shop", b"d", b"clicked", b"m"))
        expected = hashlib.sha256(text + b"\xff" * 4).digest()[:16]
        self.assertEqual(parsed(type="open", message_uid="m", device_id="d").key, expected)

    def test_what_makes_two_events_one(self):
        first = dict(type="launch", device_id="d", occurred_at=at(0), properties={"a": 1, "b": [2]})
        self.assertEqual(
            parsed(**first).key, parsed(**first | {"properties": {"b": [2.0], "a": 10e-1}}).key)
        for other in [{"properties": {"a": 2}}, {"properties": None}, {"device_id": "e"},
                      {"type": "inbox_fetch"}, {"message_uid": "m"}, {"event_uid": "u"},
                      {"occurred_at": at(0).replace("Z", "+00:00")}]:
            self.assertNotEqual(parsed(**first).key, parsed(**first | other).key, other)

    def test_canonical_numbers(self):
        for text, expected in [("1.0", "1"), ("100", "1e2"), ("-0.0", "0"), ("0.050", "5e-2"),
                               ("-1.5E+3", "-15e2"), ("1e0", "1")]:
            self.assertEqual(lines.canonical(lines.Number(text)), expected)

    def test_custom_words_are_told_apart_by_case(self):
        keys = {parsed(type=word, device_id="d", occurred_at=at(0)).key for word in ("Buy", "buy")}
        self.assertEqual(len(keys), 2)


class Times(unittest.TestCase):
    def test_text(self):
        for text, expected in [
            ("1970-01-01T00:00:01.5Z", 1_500_000), ("1970-01-01 01:00:00+01:00", 0),
            ("1970-01-01t00:00:00.0000005z", 1), ("86400", 86_400_000_000), ("1e3", 10 ** 9),
            ("1700000000000", 1_700_000_000_000_000), ("1970-01-01T24:00:00Z", 86_400_000_000),
            ("now", None), ("1970-01-01T00:00:00", None), ("1970-02-30T00:00:00Z", None),
            ("10013-12-10T01:09:46Z", None), ("", None), ("1970-01-01T00:00:00+24:00", None),
        ]:
            self.assertEqual(times.parse(text), expected, text)

    def test_corrected_device_or_server(self):
        hour = times.HOUR
        for line, expected in [
            ({"occurred_at": at(-3600)}, (NOON - hour, "device")),
            ({"occurred_at": at(-10_000), "sent_at": at(-6400)}, (NOON - hour, "corrected")),
            ({"occurred_at": at(-3600), "sent_at": at(2)}, (NOON - hour, "device")),
            ({"occurred_at": at(-3600), "sent_at": at(-4000)}, (NOON - hour, "device")),
            ({"occurred_at": at(300)}, (NOON + 300 * times.SECOND, "device")),
            ({"occurred_at": at(301)}, (NOON, "server")), ({"occurred_at": 0}, (NOON, "server")),
            ({"occurred_at": "now"}, (NOON, "server")), ({}, (NOON, "server")),
        ]:
            found = parsed(type="clicked", message_uid="m", **line)
            self.assertEqual((found.time, found.time_rule), expected, line)

    def test_the_header_stands_for_lines_without_their_own(self):
        envelope = event("clicked", seconds=-10_000, received=0) | {"x_sent_at": at(-6400)}
        self.assertEqual(lines.event_of(envelope).time, NOON - times.HOUR)
        envelope["event"]["sent_at"] = at(-10_000)
        self.assertEqual(lines.event_of(json.dumps(envelope)).time, NOON)


class Repeats(unittest.TestCase):
    def test_clicks_are_seen_apart_only_with_an_event_uid(self):
        found = totals([event("clicked"), event("clicked", seconds=9)])
        self.assertEqual((found["clicked"], found["clicks_total"]), (1, 1))
        found = totals([event("clicked", event_uid="A"), event("clicked", event_uid="B"),
                        event("open", seconds=5, event_uid="B")])
        self.assertEqual((found["clicked"], found["clicks_total"]), (1, 2))

    def test_of_a_conflict_the_first_stays(self):
        found = totals([event("clicked", campaign_id="a"), event("clicked", campaign_id="b")],
                       campaign="a")
        self.assertEqual((found["clicked"], found["flags"]), (1, []))


if __name__ == "__main__":
    unittest.main()
