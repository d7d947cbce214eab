"""Each query of each dashboard runs on the demo's data: none fails, none is empty."""

import datetime
import json
import pathlib
import re
import unittest
import urllib.parse

from harness import ROOT, Process, Tapline, free_port, request, run, until

DASHBOARDS = ROOT / "dashboards"
METRIC = re.compile(r"\b(?:tapline|process)_[a-z_]+\b")
# What Grafana would fill in: all of everything, over the days of the sample.
FROM = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=60)
TO = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)


def dashboard(name):
    return json.loads((DASHBOARDS / name).read_text())


def panels(board):
    """The panels, also those inside rows."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def variables(board, kind="query"):
    return [v for v in board["templating"]["list"] if v["type"] == kind]


class Layout(unittest.TestCase):
    def test_panels_have_their_own_ids_and_places(self):
        for name in ("ingestion.json", "campaigns.json"):
            found = list(panels(dashboard(name)))
            ids = [panel["id"] for panel in found]
            self.assertEqual(len(ids), len(set(ids)), name)
            cells = set()
            for panel in found:
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
                for x in range(place["x"], place["x"] + place["w"]):
                    for y in range(place["y"], place["y"] + place["h"]):
                        self.assertNotIn((x, y), cells, panel["title"])
                        cells.add((x, y))

    def test_every_panel_takes_the_chosen_data_source_and_says_what_it_shows(self):
        for name, kind in (("ingestion.json", "prometheus"), ("campaigns.json", "postgres")):
            board = dashboard(name)
            self.assertEqual([v["query"] for v in variables(board, "datasource")], [kind])
            sources = [v["datasource"] for v in variables(board)]
            for panel in panels(board):
                if panel["type"] in ("row", "text"):
                    continue
                self.assertTrue(panel.get("description"), panel["title"])
                sources.append(panel["datasource"])
            for source in sources:
                self.assertEqual((source["type"], source["uid"]), (kind, "${datasource}"))


class Queries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tapline = Tapline()
        cls.addClassCleanup(cls.tapline.stop)
        cls.start_prometheus()
        cls.wait_for_scrapes(1)
        cls.tapline.send_sample()
        cls.wait_for_scrapes(2)
        cls.tapline.sql("CREATE ROLE tapline_reader; GRANT pg_read_all_data TO tapline_reader")

    # MARK: Prometheus

    @classmethod
    def start_prometheus(cls):
        """A Prometheus with the settings of dashboards/, but for the port and the interval."""
        directory = pathlib.Path(cls.tapline.directory)
        text = (DASHBOARDS / "prometheus.yml").read_text()
        target, changes = re.subn(r"127\.0\.0\.1:8080", f"127.0.0.1:{cls.tapline.port}", text)
        assert changes == 1
        target = re.sub(r"_interval: \d+s", "_interval: 1s", target)
        (directory / "prometheus.yml").write_text(target)
        (directory / "alerts.yml").write_text((DASHBOARDS / "alerts.yml").read_text())
        port = free_port()
        cls.prometheus_url = f"http://127.0.0.1:{port}/api/v1"
        cls.prometheus = Process("prometheus", [
            "prometheus", f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/prometheus", "--log.level=warn",
            f"--web.listen-address=127.0.0.1:{port}"], directory)
        cls.addClassCleanup(cls.prometheus.stop)

    @classmethod
    def wait_for_scrapes(cls, more):
        """Waits for so many scrapes that begin from now on."""
        def scrapes():
            cls.prometheus.require_alive()
            try:
                found = cls.ask_prometheus("query", query="count_over_time(up[1h])")
            except OSError:
                return None
            return float(found["result"][0]["value"][1]) if found else None

        # The one that is under way may have begun before.
        target = until("Prometheus scrapes", scrapes) + more
        until("more scrapes", lambda: scrapes() > target or None)

    @classmethod
    def ask_prometheus(cls, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        status, _, body = request(f"{cls.prometheus_url}/{path}?{query}")
        if status == 503:
            return None
        answer = json.loads(body)
        if answer["status"] != "success":
            raise AssertionError(f"{parameters}: {answer}")
        data = answer["data"]
        return data if not isinstance(data, dict) or data.get("result") != [] else None

    def fill_in(self, expression):
        text = expression.replace("$__rate_interval", "1m")
        text = re.sub(r"\$\{?(job|instance)\}?", ".*", text)
        self.assertNotIn("$", text)
        return text

    def test_ingestion_queries(self):
        names = set(re.findall(r"^([a-z_]+)", self.tapline.metrics(), re.MULTILINE))
        count = 0
        for panel in panels(dashboard("ingestion.json")):
            for target in panel.get("targets", []):
                count += 1
                with self.subTest(panel=panel["title"], expression=target["expr"]):
                    self.assertEqual(set(METRIC.findall(target["expr"])) - names, set())
                    found = self.ask_prometheus("query", query=self.fill_in(target["expr"]))
                    self.assertTrue(found)
                    for series in found["result"]:
                        self.assertNotEqual(series["value"][1], "NaN")
        self.assertGreater(count, 15)

    def test_ingestion_variables(self):
        for variable in variables(dashboard("ingestion.json")):
            query = self.fill_in(variable["query"])
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
            with self.subTest(variable=variable["name"]):
                self.assertTrue(
                    self.ask_prometheus(f"label/{label}/values", **{"match[]": series}))

    def test_operations_document_has_every_metric_and_no_other(self):
        families = set(re.findall(r"^# TYPE (\S+)", self.tapline.metrics(), re.MULTILINE))
        table = (ROOT / "docs/operations.md").read_text().split("## Metrics")[1].split("\n## ")[0]
        named = set()
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
            named |= set(re.findall(r"`([a-z_]+)", row))
        self.assertEqual(named, families)

    def test_alert_rules_are_evaluated_on_metrics_that_exist(self):
        def evaluated():
            groups = self.ask_prometheus("rules")["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            return None if any(rule["health"] == "unknown" for rule in rules) else rules

        names = set(re.findall(r"^([a-z_]+)", self.tapline.metrics(), re.MULTILINE))
        for rule in until("the rules are evaluated", evaluated):
            with self.subTest(alert=rule["name"]):
                self.assertEqual(rule["health"], "ok", rule.get("lastError"))
                self.assertEqual(set(METRIC.findall(rule["query"])) - names, set())
                self.assertEqual(rule["state"], "inactive")

    # MARK: PostgreSQL

    def rows(self, query, app="'shop'"):
        """Runs a query of the dashboard as the role that Grafana has in deploy/compose.yaml."""
        text = re.sub(r"\$__timeFrom\(\)", f"'{FROM.isoformat()}'", query)
        text = re.sub(r"\$__timeTo\(\)", f"'{TO.isoformat()}'", text)
        values = {"app": app, "tz": "'Europe/Berlin'", "dimension": "'platform'"}
        for name, value in values.items():
            text = text.replace("${%s:sqlstring}" % name, value)
        self.assertNotIn("$", text)
        options = "-c default_transaction_read_only=on -c role=tapline_reader"
        return self.tapline.sql(text, options).splitlines()

    def test_campaign_queries(self):
        board = dashboard("campaigns.json")
        # What Grafana puts in for "All" is the variable's own value, as it is.
        everything = next(v["allValue"] for v in variables(board) if v["name"] == "app")
        count = 0
        for panel in panels(board):
            for target in panel.get("targets", []):
                count += 1
                for app in ("'shop'", everything):
                    with self.subTest(panel=panel["title"], app=app, query=target["rawSql"]):
                        rows = self.rows(target["rawSql"], app)
                        self.assertTrue(rows)
                        # A row of nothing but empty fields shows as little as none.
                        self.assertTrue(any(row.strip(",") for row in rows))
        self.assertGreater(count, 5)

    def test_dashboard_and_command_line_count_the_same(self):
        names = ["sent", "delivered", "clicked", "clicks_total", "inbox_opened", "engaged"]
        report = json.loads(self.tapline.command("report", "--format", "json"))
        expected = [[row["app"], row["campaign_id"], *(row[name] for name in names)]
                    for row in report["campaigns"]]
        rows = json.loads("".join(self.rows(
            f"SELECT json_agg(json_build_array(app, campaign_id, {', '.join(names)})) "
            "FROM tapline.report() WHERE NOT is_total")).strip('"').replace('""', '"'))
        self.assertGreater(len(expected), 10)
        self.assertEqual(sorted(rows), sorted(expected))

    def test_campaign_variables(self):
        for variable in variables(dashboard("campaigns.json")):
            with self.subTest(variable=variable["name"]):
                self.assertTrue(self.rows(variable["query"]))


if __name__ == "__main__":
    unittest.main()
