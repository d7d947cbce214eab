"""The alert rules and scrape settings are valid, and each alert fires on its fault alone."""

import re
import unittest

from harness import ROOT, run

RULES = ROOT / "dashboards/alerts.yml"
TESTS = ROOT / "dashboards/alerts_test.yml"


class Rules(unittest.TestCase):
    def test_settings_are_valid(self):
        run("promtool", "check", "config", str(ROOT / "dashboards/prometheus.yml"))

    def test_alerts_fire_on_their_fault(self):
        run("promtool", "test", "rules", str(TESTS))

    def test_every_alert_is_tested_and_says_what_to_do(self):
        rules = re.split(r"- alert: ", RULES.read_text())[1:]
        self.assertGreater(len(rules), 5)
        for rule in rules:
            name = rule.split()[0]
            for part in ("severity:", "summary:", "action:"):
                self.assertIn(part, rule, name)
            self.assertIn(name, TESTS.read_text())


if __name__ == "__main__":
    unittest.main()
