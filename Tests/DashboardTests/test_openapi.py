"""docs/openapi.yaml says what the service does, and nothing else."""

import gzip
import json
import re
import unittest

from harness import ROOT, Tapline, request, until

# Answers that need a slow client, a rate, a full disk or a full spool; other tests make them.
ELSEWHERE = {"408", "429", "503", "507"}
GOOD = b'{"type":"clicked","message_uid":"openapi","device_id":"d"}\n'


def documented():
    """The paths of the document: path -> method -> statuses. Reads the two-space layout it has."""
    paths, path, method = {}, None, None
    for line in (ROOT / "docs/openapi.yaml").read_text().splitlines():
        if re.match(r"\S", line):
            inside = line == "paths:"
        elif not inside:
            continue
        elif match := re.fullmatch(r"  (/\S*):", line):
            path = paths.setdefault(match[1], {})
        elif match := re.fullmatch(r"    ([a-z]+):", line):
            method = path.setdefault(match[1].upper(), set())
        elif match := re.fullmatch(r'        "(\d{3})":', line):
            method.add(match[1])
    return paths


class Document(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tapline = Tapline()
        cls.addClassCleanup(cls.tapline.stop)
        cls.paths = documented()
        cls.key = cls.tapline.key("openapi")

    def ask(self, path, method="GET", key=None, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return request(self.tapline.url + path, method, headers, body)

    def test_every_path_takes_the_documented_methods_alone(self):
        self.assertIn("/v1/events", self.paths)
        for path, methods in self.paths.items():
            path = re.sub(r"\{.*?\}", "x", path)
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
                status, headers, _ = self.ask(path, method)
                with self.subTest(path=path, method=method):
                    self.assertNotEqual(status, 404)
                    if method in methods:
                        self.assertNotEqual(status, 405)
                    else:
                        self.assertEqual(status, 405)
                        allowed = set(re.findall(r"\w+", headers["Allow"])) - {"HEAD"}
                        self.assertEqual(allowed, set(methods))

    def test_every_status_of_reports_is_documented_and_comes(self):
        reader = self.tapline.key("openapi", role="read")
        self.ask("/v1/events?ack=stored", "POST", self.key, GOOD.replace(
            b'"openapi"', b'"report","campaign_id":"c"'), Content_Type="application/x-ndjson")
        compare = "/v1/reports/compare?campaign=c&campaign=d"
        for path, target in (
            ("/v1/reports/campaigns", "/v1/reports/campaigns?top=1"),
            ("/v1/reports/campaigns/{campaign}", "/v1/reports/campaigns/c?top=1"),
            ("/v1/reports/compare", compare),
        ):
            status, headers, _ = self.ask(target, key=reader)
            answers = [
                (200, status),
                (304, self.ask(target, key=reader, If_None_Match=headers["ETag"])[0]),
                (400, self.ask(target + "&tz=nowhere", key=reader)[0]),
                (401, self.ask(target)[0]),
                (403, self.ask(target, key=self.key)[0]),
                (405, self.ask(target, "POST", reader, b"")[0]),
            ]
            if "{" in path:
                answers.append((404, self.ask("/v1/reports/campaigns/none", key=reader)[0]))
            with self.subTest(path=path):
                self.assertEqual([came for _, came in answers], [wanted for wanted, _ in answers])
                came = {str(status) for status, _ in answers}
                self.assertEqual(self.paths[path]["GET"], came | {"429", "503"})

    def test_every_member_of_a_report_is_documented(self):
        reader = self.tapline.key("members", role="read")
        text = (ROOT / "docs/openapi.yaml").read_text()

        def members(schema):
            part = re.split(r"\n    \w", text.split(f"\n    {schema}:\n")[1])[0]
            return set(re.findall(r"^        (\w+):", part, re.MULTILINE))

        report = json.loads(self.ask("/v1/reports/campaigns", key=reader)[2])
        self.assertEqual(members("Report"), set(report) | {"next"})
        self.assertEqual(members("ReportRow"), set(report["totals"]))
        self.assertEqual(members("Rate"), set(report["totals"]["ctr_sent"]))
        comparison = json.loads(
            self.ask("/v1/reports/compare?campaign=c&campaign=d", key=reader)[2])
        self.assertEqual(members("Comparison"), set(comparison))
        pair = re.search(r"required: \[(a, b, .*?)\]", text)[1]
        self.assertEqual(set(pair.split(", ")), set(comparison["pairs"][0]))

    def test_every_parameter_of_a_report_is_documented(self):
        reader = self.tapline.key("parameters", role="read")
        text = (ROOT / "docs/openapi.yaml").read_text()
        shared = dict(re.findall(r"^    (\w+):\n      name: (\S+)\n      in: query", text, re.MULTILINE))
        for path in ("/v1/reports/campaigns", "/v1/reports/compare"):
            part = re.split(r"\n  /", text.split(f"\n  {path}:\n")[1])[0]
            named = set(re.findall(r"- name: (\S+)\n          in: query", part))
            named |= {shared[name] for name in re.findall(r"parameters/(\w+)", part) if name in shared}
            answer = json.loads(self.ask(path + "?no-such=1", key=reader)[2])
            known = answer["error"]["message"].split("there are ")[1].split(", ")
            self.assertEqual(named, set(known))

    def test_every_path_of_the_product_that_answers_is_documented(self):
        for path in ("/", "/v1/reports/campaigns", "/v1/tail", "/v1", "/version"):
            if path not in self.paths:
                self.assertEqual(self.ask(path)[0], 404, path)

    def test_every_status_of_events_is_documented_and_comes(self):
        ndjson = {"Content_Type": "application/x-ndjson"}
        wrong = self.tapline.key("openapi", role="read")
        revoked = self.tapline.key("openapi")
        self.tapline.command("key", "revoke", revoked)
        many = GOOD * 10_001
        answers = [
            (200, self.ask("/v1/events", "POST", self.key, GOOD + b"{}\n", **ndjson)),
            (200, self.ask("/v1/events?ack=stored", "POST", self.key, GOOD, **ndjson)),
            (200, self.ask(
                "/v1/events", "POST", self.key, gzip.compress(GOOD), Content_Encoding="gzip",
                **ndjson)),
            (400, self.ask(
                "/v1/events", "POST", self.key, gzip.compress(GOOD)[:-1],
                Content_Encoding="gzip", **ndjson)),
            (400, self.ask("/v1/events?strict=1", "POST", self.key, b"{}\n", **ndjson)),
            (400, self.ask(
                "/v1/events", "POST", self.key, b"{", Content_Type="application/json")),
            (401, self.ask("/v1/events", "POST", None, GOOD, **ndjson)),
            (401, self.ask("/v1/events", "POST", "no-such-key", GOOD, **ndjson)),
            (403, self.ask("/v1/events", "POST", wrong, GOOD, **ndjson)),
            (403, self.ask("/v1/events", "POST", revoked, GOOD, **ndjson)),
            (405, self.ask("/v1/events", "PUT", self.key, GOOD, **ndjson)),
            (413, self.ask("/v1/events", "POST", self.key, many, **ndjson)),
            (415, self.ask("/v1/events", "POST", self.key, GOOD, Content_Type="image/png")),
            (431, self.ask("/v1/events", "POST", self.key, GOOD, X_Long="x" * 66_000, **ndjson)),
        ]
        for expected, (status, headers, body) in answers:
            with self.subTest(status=expected, body=body):
                self.assertEqual(status, expected)
                answer = json.loads(body)
                self.assertTrue(headers["Content-Type"].startswith("application/json"))
                if status == 200:
                    self.assertLessEqual({"received", "accepted", "rejected", "errors"}, set(answer))
                else:
                    self.assertLessEqual({"code", "message"}, set(answer["error"]))
        came = {str(expected) for expected, _ in answers}
        self.assertEqual(self.paths["/v1/events"]["POST"], came | ELSEWHERE)

    def test_every_status_of_a_source_is_documented_and_comes(self):
        reader = self.tapline.key("openapi", role="read")
        self.tapline.command("app", "alias", "another", "their-id")
        vibes = "/mobile_apps/{app}/devices"
        sources = {
            vibes: ("openapi", {404: "nobody"}),
            vibes + "/{device}": ("openapi", {404: "nobody"}),
            vibes + "/{device}/push_registration": ("openapi", {404: "nobody"}),
            vibes + "/{device}/assign": ("openapi", {404: "nobody"}),
            vibes + "/{device}/events": ("openapi", {404: "nobody"}),
            "/sap/registrations": ("", {}),
            "/api/push/event": ("", {}),
            "/api/v5/device/inapp/tracking": ("", {}),
            "/api/v3/device": ("", {}),
            "/sap/notification-status": ("", {}),
            "/json/1.3/{method}": ("pushStat", {501: "getTags"}),
            "/api/v1/register-device": ("", {}),
            "/api/v1/identify-device": ("", {}),
        }
        body = json.dumps({
            "events": [], "device_uid": "d", "deviceId": "d",
            "request": {"hash": "h", "hwid": "d"}}).encode()
        long = b'{"x":"' + b"x" * (10 << 20) + b'"}'
        calls = [(template, method) for template in sources for method in self.paths[template]]
        for template, method in calls:
            name, others = sources[template]
            path = re.sub(r"\{(app|method)\}", name, template).replace("{device}", "d")
            other_method = "GET" if "PATCH" in self.paths[template] else "PATCH"
            answers = [
                (200, self.ask(path, method, self.key, body)),
                (400, self.ask(
                    path, method, self.key, gzip.compress(body)[:-1], Content_Encoding="gzip")),
                # Whoever registers a device of Vibes names the app in the path: without a key, 403.
                (401, self.ask(path, method, "none" if template == vibes else None, body)),
                (403, self.ask(path, method, reader, body)),
                (405, self.ask(path, other_method, self.key, body)),
                (413, self.ask(path, method, self.key, long)),
                (415, self.ask(path, method, self.key, body, Content_Encoding="br")),
                (431, self.ask(path, method, self.key, body, X_Long="x" * 66_000)),
            ]
            for status, other in others.items():
                answers.append((status, self.ask(path.replace(name, other), method, self.key, body)))
            if template == "/json/1.3/{method}" or template.startswith("/api/v1/"):
                # The id of an app that is none, with a key.
                named = body.replace(b'"hash"', b'"application": "nobody", "hash"')
                named = named.replace(b'"events"', b'"app_id": "nobody", "events"')
                answers.append((404, self.ask(path, method, self.key, named)))
            for expected, (status, headers, text) in answers:
                with self.subTest(path=path, method=method, status=expected, body=text):
                    self.assertEqual(status, expected)
                    self.assertTrue(headers["Content-Type"].startswith("application/json"))
                    json.loads(text)
            with self.subTest(path=path, method=method):
                came = {str(expected) for expected, _ in answers}
                elsewhere = {"408", "500"} if "mobile_apps" in path else ELSEWHERE
                self.assertEqual(self.paths[template][method], came | elsewhere)

    def test_the_examples_of_sources_are_answered_as_they_say(self):
        self.tapline.command("app", "alias", "openapi", "their-app-id")
        self.tapline.command("app", "alias", "--without-key", "openapi", "THEIR-CODE")
        text = (ROOT / "docs/sources.md").read_text()
        blocks = re.findall(r"^```\n((?:POST|PUT) .*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 5)
        for block in blocks:
            head, body, answer = block.strip().split("\n\n")
            request_line, *lines = head.splitlines()
            headers = {
                name: value.replace("KEY", self.key)
                for name, value in (line.split(": ") for line in lines)}
            method, path = request_line.split()

            def taken():
                # A new alias is known within seconds.
                status, _, text = request(self.tapline.url + path, method, headers, body.encode())
                # What is made anew for each device.
                text = re.sub('"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"', '"ID"', text.decode())
                text = re.sub(r'"tld1\.[^"]+"', '"TOKEN"', text)
                return None if status in (403, 404) else f"{status} {text}"

            with self.subTest(path=path):
                self.assertEqual(until(path, taken, seconds=10), answer)

    def test_verdicts_with_ack_stored_add_up(self):
        body = GOOD.replace(b"openapi", b"sum") * 2 + b"[]\n"
        answer = json.loads(self.ask(
            "/v1/events?ack=stored", "POST", self.key, body,
            Content_Type="application/x-ndjson")[2])
        parts = ("accepted", "duplicates", "conflicts", "dead_lettered", "rejected")
        self.assertEqual([answer[part] for part in parts], [1, 1, 0, 0, 1])
        self.assertEqual(answer["received"], 3)


if __name__ == "__main__":
    unittest.main()
