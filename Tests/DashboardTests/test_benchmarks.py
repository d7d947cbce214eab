"""What the benchmarks rest on: events that can be made again, a load that is counted right, a large
database that is the loader's own, a peer that answers and stores once, sections that stay apart."""

import gzip
import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from harness import BINARY, ROOT

# At the end: the standard library has a module `profile` too.
sys.path.append(str(ROOT / "Benchmarks"))

import report  # noqa: E402
import scale  # noqa: E402
from common import daemon, document, events, load, peer  # noqa: E402

COUNT = 2000
# What is the same however an event reached the loader.
COLUMNS = ("key, unit, event_time, type, time_rule, properties_hash, app, campaign_id, message_uid, "
           "device_id, event_uid, platform, app_version, occurred_at, properties")


def rows(one):
    return one.sql(f"SELECT {COLUMNS} FROM tapline.event "
                   "WHERE campaign_id IS NOT NULL ORDER BY key")


class Events(unittest.TestCase):
    def stream(self):
        return events.Stream(7, 1_790_000_000, 86_400, COUNT)

    def test_events_are_a_function_of_seed_and_position(self):
        lines = self.stream().lines(0, COUNT)
        self.assertEqual(lines[1500], self.stream().line(1500))
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()
        # Changes when the generator does: figures from before can then not be compared.
        self.assertEqual(digest, "8eeab9a1b8abf0262554f2184dcb09ce85496038b692cffc4bd21b3de9bf387a")
        other = events.Stream(8, 1_790_000_000, 86_400, COUNT).lines(0, COUNT)
        self.assertFalse(set(lines) & set(other))

    def test_statuses_follow_the_receipt_of_their_message(self):
        receipts, kinds = {}, {}
        for line in self.stream().lines(0, COUNT):
            event = json.loads(line)
            kinds[event["type"]] = kinds.get(event["type"], 0) + 1
            of = {name: event[name] for name in ("device_id", "campaign_id", "platform")}
            if event["type"] == "received":
                receipts[event["message_uid"]] = of
            self.assertEqual(receipts[event["message_uid"]], of)
        self.assertEqual(len(receipts), kinds["received"])
        self.assertGreater(kinds["clicked"], COUNT * 0.05)
        self.assertGreater(kinds["inbox_open"], COUNT * 0.03)

    def test_wide_events_say_the_same_of_a_message_and_something_of_every_dimension(self):
        said, values = {}, {}
        for line in events.Wide(7, 1_790_000_000, 86_400, COUNT).lines(0, COUNT):
            event = json.loads(line)
            event |= {name: event["properties"].get(name) for name in ("topic", "push_group")}
            of_unit = {name: event.get("category_id" if name == "category" else name)
                       for name in report.Aggregate.OF_UNIT if name != "campaign"}
            self.assertEqual(said.setdefault(event["message_uid"], of_unit), of_unit)
            for name, value in (of_unit | {"type": event["type"], "action": event.get("action_id")}).items():
                values.setdefault(name, set()).add(value)
        for name, some in values.items():
            self.assertGreater(len(some), 1, name)


class Aggregates(unittest.TestCase):
    """What `bench-report` holds reports against."""

    def test_every_difference_is_one(self):
        aggregate = report.Aggregate(None, 1)
        expected = dict.fromkeys(aggregate.COUNTS, 0) | {
            "delivered": 8, "clicked": 2, "dismissed_only": 1, "engaged": 3, "sent": None}

        def row():
            rates = {name: {"numerator": expected[part], "denominator": expected[whole],
                            "value": expected[part] / expected[whole]}
                     for name, (part, whole) in aggregate.RATES.items()}
            return expected | rates
        self.assertIsNone(aggregate.differ(expected, row()))
        for name in aggregate.COUNTS.keys() - {"dismissed_only"}:
            for other in (None if expected[name] is not None else 0, 5):
                self.assertIn(name, aggregate.differ(expected, row() | {name: other}))
        for name in aggregate.RATES:
            for side, other in (("numerator", 4), ("denominator", 9), ("value", None)):
                wrong = row()
                wrong[name][side] = other
                self.assertIn(name, aggregate.differ(expected, wrong))
        self.assertIsNotNone(aggregate.differ(None, row()))

    def test_pairs_are_held_all_or_each_dimension_once(self):
        dimensions = report.Aggregate.DIMENSIONS
        for count, fewest in ((300_000, 91), (10_000_000, 7)):
            pairs = list(report.held_pairs(count))
            self.assertEqual(len(set(pair for pair, _ in pairs)), 91)
            held = [pair for pair, is_held in pairs if is_held]
            self.assertEqual(len(held), fewest)
            self.assertEqual(set().union(*held), set(dimensions))


class Loads(unittest.TestCase):
    def test_the_large_database_is_what_the_loader_makes_of_the_events(self):
        with tempfile.TemporaryDirectory(prefix="tapline-bench-") as folder:
            os.chmod(folder, 0o711)
            base = scale.Base(BINARY, folder + "/scale", COUNT)
            base.build()
            base.known["loaded"] = 0
            base.build()
            with base.start() as one:
                built = rows(one)
                one.require_balance()
            self.assertEqual(built.count("\n"), COUNT - 1)
            self.assertIsNone(scale.Base(BINARY, folder + "/scale", COUNT).build())
            bodies = folder + "/bodies"
            events.write_bodies(bodies, base.stream.lines(0, COUNT), size=300)
            with daemon.Fresh(BINARY) as one:
                sent = load.post(one.port, one.key, bodies, connections=3)
                self.assertEqual(
                    [sent[name] for name in ("bodies", "events", "accepted", "failed")],
                    [7, COUNT, COUNT, 0])
                again = load.post(one.port, one.key, bodies, rate=1000)
                self.assertGreaterEqual(again["seconds"], 6 / 1000)
                one.wait_until_stored(2 * COUNT)
                self.assertEqual(rows(one), built)

    def test_refused_bodies_are_counted(self):
        with daemon.Fresh(BINARY) as one, tempfile.NamedTemporaryFile() as bodies:
            events.write_bodies(bodies.name, ["{\n"] * 4, size=2, plain=True)
            sent = load.Load(one.port, one.key, bodies.name, plain=True).wait(failures_allowed=True)
            self.assertEqual([sent["events"], sent["accepted"], sent["failed"]], [4, 0, 2])
            self.assertIn("200 OK", sent["failure"])

    @unittest.skipUnless(pathlib.Path(peer.PYTHON, "granian").exists(),
                         "make bench-compare makes the peers' environment")
    def test_the_peer_answers_and_stores_once(self):
        lines = Events().stream().lines(0, 50)
        with daemon.Fresh(BINARY) as one:
            for server in peer.SERVERS:
                with self.subTest(server=server), peer.Peer(one, server) as other:
                    for text, headers in (("".join(lines[:40]).encode() + b"{}\n", {}),
                                          (gzip.compress("".join(lines[20:]).encode()),
                                           {"Content-Encoding": "gzip"})):
                        status, answer = other.post(text, headers)
                        self.assertEqual(status, 200)
                    self.assertEqual(json.loads(answer),
                                     {"received": 30, "accepted": 30, "rejected": 0})
                    self.assertEqual(other.rows(), 50)
                    self.assertEqual(other.post(b"", {"Authorization": "Bearer no"})[0], 401)
                    self.assertEqual(other.post(b"x", {"Content-Encoding": "gzip"})[0], 400)


class Documents(unittest.TestCase):
    def test_a_section_is_replaced_alone(self):
        with tempfile.NamedTemporaryFile("r+", suffix=".md") as file:
            file.write("# Head\n")
            file.flush()
            for name, text in (("a", "one"), ("b", "two"), ("a", "three")):
                document.write_section(file.name, name, text)
            text = pathlib.Path(file.name).read_text()
            self.assertEqual(re.sub(r"<!-- (\w): (\w+) -->", r"<\1 \2>", text),
                             "# Head\n\n<a begin>\nthree\n<a end>\n\n<b begin>\ntwo\n<b end>\n")

    def test_a_ratio_that_is_a_tenth_below_the_document_is_named(self):
        table_rows = [("ratio", "**stored / limit**", "{:.2f}"), ("rate", "events/s", "{:.0f}")]

        def table(ratio, rate):
            made = document.Table(table_rows)
            made.add({"ratio": ratio, "rate": rate})
            return made

        with tempfile.NamedTemporaryFile("r+", suffix=".md") as file:
            document.write_section(file.name, "a", table(0.50, 1000).text())
            self.assertEqual(table(0.44, 1000).fallen(file.name, "a"),
                             ["**stored / limit**: 0.44, was 0.50"])
            # A rate is of a machine and an hour.
            for ratio in (0.45, 0.60):
                self.assertEqual(table(ratio, 500).fallen(file.name, "a"), [])

    def test_the_document_has_a_section_for_each_command(self):
        text = (ROOT / "docs/benchmarks.md").read_text()
        for name in ("bench", "scale", "compare", "abuse", "hour"):
            for marker in document.markers(name):
                self.assertEqual(text.count(marker), 1, marker)


if __name__ == "__main__":
    unittest.main()
