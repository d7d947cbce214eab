"""What holds for any events: order, repeats, parts and wholes."""
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from oracle import compare, events, lines, report, times
from oracle.today import Today

RATES = ("delivery_rate", "ctr_delivered", "ctr_sent", "ctr_accepted", "engagement_rate",
         "dismiss_rate", "influenced_rate", "conversion_rate")
COUNTS = ("observed", "delivered", "implied", "clicked", "clicks_total", "actions", "dismissed",
          "inbox_opened", "engaged", "influenced", "converted", "test_excluded", "late",
          "clicks_before_receipts")


class Invariance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = events.Generator(5, 700)
        cls.events = lines.events_of(cls.made.envelopes)
        cls.today = Today(cls.made.registrations(), events.categories(), cls.made.test_devices())
        cls.reports = report.Reports(cls.events, cls.today)

    def of(self, envelopes=None, **options):
        options = report.Options(**options)
        return self.reports.of(options) if envelopes is None \
            else report.report(envelopes, options, self.today)

    def test_any_order_and_any_repeats_give_the_same_report(self):
        made = events.Generator(6, 600, is_free_of_arrival=True)
        chance = random.Random(6)
        for by, by_activity in itertools.product(
                [("campaign",), ("topic", "day"), ("type",), ("app_version", "action")],
                (False, True)):
            expected = self.of(made.envelopes, by=by, by_activity=by_activity)
            again = made.envelopes + chance.sample(made.envelopes, 300)
            chance.shuffle(again)
            found = self.of(again, by=by, by_activity=by_activity)
            self.assertEqual(compare.reports(expected, found, by), [])
            self.assertEqual(expected, found)

    def test_the_report_of_then_is_that_of_what_was_there_then(self):
        stored = sorted({e["stored_at"] for e in self.made.envelopes}, key=times.parse)
        for at in map(times.parse, stored[::15]):
            before = [e for e in self.made.envelopes if times.parse(e["stored_at"]) <= at]
            self.assertEqual(
                report.report(self.made.envelopes, report.Options(as_of=at), self.today),
                report.report(before, report.Options(), self.today))

    def test_rates_are_in_bounds_and_counts_fit_each_other(self):
        for by, by_activity in itertools.product(
                itertools.chain(((d,) for d in report.DIMENSIONS), [("day", "type")]),
                (False, True)):
            found = self.of(by=by, by_activity=by_activity)
            for row in [found["totals"], *found["campaigns"]]:
                self.assertEqual(row["delivered"], row["observed"] + row["implied"])
                self.assertLessEqual(row["converted"], row["clicked"])
                self.assertLessEqual(row["influenced"] + row["clicked"], row["delivered"])
                for name in RATES:
                    self.in_bounds(row[name])
                for share in row["action_share"]:
                    self.in_bounds(share)

    def in_bounds(self, rate):
        if rate["value"] is None:
            self.assertFalse(rate["denominator"] and rate["numerator"] is not None)
        else:
            self.assertTrue(0 <= rate["low"] <= rate["value"] <= rate["high"] <= 1)

    def test_rows_add_up_where_a_unit_is_in_one(self):
        for by in [("campaign",), ("day",), ("hour", "platform"), ("category",)]:
            found = self.of(by=by)
            for name in COUNTS:
                self.assertEqual(found["totals"][name], sum(r[name] for r in found["campaigns"]))

    def test_totals_do_not_depend_on_the_dimensions(self):
        for by_activity in (False, True):
            totals = [self.of(by=by, by_activity=by_activity)["totals"]
                      for by in [("campaign",), ("topic", "type"), ("hour", "action")]]
            self.assertEqual(totals[0], totals[1])
            self.assertEqual(totals[0], totals[2])

    def test_without_a_period_both_views_have_the_same_totals(self):
        self.assertEqual(self.of()["totals"], self.of(by_activity=True)["totals"])

    def test_periods_add_up(self):
        for by_activity, names in [(False, COUNTS), (True, ("clicks_total", "late"))]:
            cut = times.parse("2026-03-29T01:00:00Z")
            parts = [self.of(end=cut, by_activity=by_activity),
                     self.of(start=cut, by_activity=by_activity)]
            whole = self.of(by_activity=by_activity)["totals"]
            for name in names:
                self.assertEqual(whole[name], sum(p["totals"][name] for p in parts), name)

    def test_two_dimensions_commute(self):
        one, other = self.of(by=("locale", "type")), self.of(by=("type", "locale"))
        self.assertEqual(compare.reports(one, other, ("locale", "type")), [])


class Generated(unittest.TestCase):
    def test_a_seed_gives_the_same_events(self):
        self.assertEqual(events.Generator(3, 300).envelopes, events.Generator(3, 300).envelopes)
        self.assertNotEqual(events.Generator(3, 300).envelopes, events.Generator(4, 300).envelopes)

    def test_everything_happens(self):
        made = events.Generator(1, 3000)
        today = Today(made.registrations(), events.categories(), made.test_devices())
        reports = report.Reports(lines.events_of(made.envelopes), today)
        found = reports.of(report.Options(app="shop"))["totals"]
        for name in (*COUNTS, "sent", "failed", "clicks_without_send", "failed_but_clicked"):
            self.assertGreater(found[name], 0, name)
        self.assertLess(found["accepted"], found["sent"])
        every = reports.of(report.Options())["totals"]
        self.assertIn("sent_without_device", every["flags"])
        for name in report.DIMENSIONS:
            rows = reports.of(report.Options(by=(name,)))["campaigns"]
            self.assertGreater(len(rows), 4, name)


class Command(unittest.TestCase):
    def test_events_are_written_read_and_compared(self):
        here = pathlib.Path(__file__).parent

        def run(*arguments):
            return subprocess.run([sys.executable, "-B", *map(str, arguments)], check=False,
                                  capture_output=True, text=True, encoding="utf-8", cwd=here)
        with tempfile.TemporaryDirectory() as directory:
            place = pathlib.Path(directory)
            self.assertEqual(
                run("generate.py", "--events", 200, "--seed", 2, "--directory", place).stderr, "")
            asked = [
                "report.py", "--events", place / "events.ndjson", "--by", "day,hour",
                "--timezone", "Europe/Berlin", "--from", "2026-03-08", "--by-activity",
                "--devices", place / "devices.ndjson", "--categories",
                place / "categories.ndjson", "--test-devices", place / "test_devices.ndjson"]
            first = run(*asked)
            self.assertEqual(first.returncode, 0, first.stderr)
            found = json.loads(first.stdout)
            self.assertEqual(found["from"], "2026-03-08T00:00:00+01:00")
            same = place / "same.json"
            same.write_text(first.stdout, encoding="utf-8")
            self.assertEqual(run(*asked, "--compare", same).returncode, 0)
            found["campaigns"][0]["delivered"] += 1
            del found["campaigns"][1]
            same.write_text(json.dumps(found), encoding="utf-8")
            said = run(*asked, "--compare", same)
            self.assertEqual((said.returncode, len(said.stdout.splitlines())), (1, 2), said.stdout)
            self.assertEqual(run(*asked[:-1], "--by", "colour").returncode, 2)


if __name__ == "__main__":
    unittest.main()
