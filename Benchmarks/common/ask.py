"""Asks for reports, as the command and over HTTP."""
import http.client
import json
import statistics
import subprocess
import time
import urllib.parse

from common import daemon


def never(words):
    return words if "--journeys" in words else [*words, "--journeys", "never"]


class Asker:
    """Asks for reports, by the command and over HTTP."""

    def __init__(self, one):
        self.one = one
        self.key = one.command("key", "create", "--app", "bench", "--role", "read").strip()
        self.connection = None

    def command(self, words):
        before = time.monotonic()
        answer = subprocess.run(
            [self.one.binary, "report", "--data-dir", self.one.directory, "--format", "json",
             *never(words)], check=True, stdout=subprocess.PIPE, env=daemon.ENVIRONMENT).stdout
        return (time.monotonic() - before) * 1000, json.loads(answer)

    def connect(self):
        # The server closes what has been idle.
        self.connection = http.client.HTTPConnection("127.0.0.1", self.one.port, timeout=600)
        self.connection.connect()

    def over_http(self, words):
        words = never(words)
        names = [name.removeprefix("--") for name in words[::2]]
        query = urllib.parse.urlencode(list(zip(names, words[1::2])) + [("limit", "5000")])
        before = time.monotonic()
        self.connection.request("GET", "/v1/reports/campaigns?" + query,
                                headers={"Authorization": "Bearer " + self.key})
        response = self.connection.getresponse()
        body = response.read()
        took = (time.monotonic() - before) * 1000
        if response.status != 200:
            daemon.fail(f"GET /v1/reports/campaigns?{query}: {response.status} {body[:300]}")
        return took, json.loads(body)

    def time(self, words):
        """Milliseconds by the command and over HTTP, and the report, which is the same."""
        asked = [self.command(words) for _ in range(4)]
        self.connect()
        served = [self.over_http(words) for _ in range(4)]
        self.connection.close()
        report, page = asked[-1][1], served[-1][1]
        # The key is of one app, which its totals name.
        if (page["totals"] | {"app": None} != report["totals"]
                or page["campaigns"] != report["campaigns"][:5000]):
            daemon.fail(f"{words}: over HTTP it is another report than by the command")
        return *(statistics.median(took for took, _ in some[1:]) for some in (asked, served)), report
