"""A daemon with the demo's sample in it, and the programs that the tests ask about it.

Standard library only. TAPLINE_BINARY names the program, else it is the release or debug build.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = [ROOT / ".build" / kind / "tapline" for kind in ("release", "debug")]
BINARY = os.environ.get("TAPLINE_BINARY") or str(
    next((path for path in BUILDS if path.exists()), BUILDS[0]))
APPS = ["shop", "news", "games"]
# Nothing of the caller's may configure the daemon or its database.
ENVIRONMENT = {
    name: value for name, value in os.environ.items()
    if not name.startswith(("TAPLINE_", "PG")) and name != "DATABASE_URL"
} | {"NO_COLOR": "1"}


def until(what, probe, seconds=60):
    """Asks until the answer is not None; the deadline names what did not come."""
    deadline = time.monotonic() + seconds
    while (answer := probe()) is None:
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return answer


def free_port():
    """A port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(url, method="GET", headers=None, body=None, seconds=30):
    """One HTTP request: status, headers, body; an error status is an answer like any other."""
    call = urllib.request.Request(url, body, headers or {}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(call, timeout=seconds) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, dict(answer.headers), answer.read()


def run(*arguments, input=None, check=True, environment=None, seconds=120):
    """Runs a program to its end."""
    outcome = subprocess.run(
        arguments, input=input, capture_output=True, timeout=seconds,
        env=environment or ENVIRONMENT)
    if check and outcome.returncode != 0:
        raise AssertionError(
            f"{' '.join(arguments)}: exit {outcome.returncode}\n{outcome.stderr.decode()}")
    return outcome


class Process:
    """A program in the background, its output in a file."""

    def __init__(self, name, arguments, directory):
        self.log_path = pathlib.Path(directory) / f"{name}.log"
        self.name = name
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)

    def require_alive(self):
        if self.child.poll() is not None:
            raise AssertionError(
                f"{self.name} ended with {self.child.returncode}:\n{self.log_path.read_text()}")

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


class Tapline:
    """`tapline serve` on its embedded database, in a directory that goes away."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="tapline-dash-")
        # Root's database runs as another user, who has to pass through.
        os.chmod(self.directory, 0o711)
        self.data = self.directory + "/data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.daemon = Process(
            "serve", [BINARY, "serve", "--data-dir", self.data,
                      "--listen", f"127.0.0.1:{self.port}"], self.directory)
        try:
            until("tapline is ready", self._ready)
        except BaseException:
            self.stop()
            raise

    def _ready(self):
        self.daemon.require_alive()
        try:
            return True if request(self.url + "/readyz")[0] == 200 else None
        except OSError:
            return None

    def stop(self):
        self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def command(self, *arguments, input=None):
        """A command of the same binary on the same data directory."""
        return run(BINARY, *arguments, "--data-dir", self.data, input=input).stdout.decode()

    def key(self, app, role="ingest"):
        return self.command("key", "create", "--app", app, "--role", role).strip()

    def send_sample(self, percent=10):
        """Sends the demo's sample of each app and waits until it is stored and folded."""
        for app in APPS:
            sample = run(
                BINARY, "demo", "--print-sample", app, "--sample-percent", str(percent)).stdout
            # The sample has bad lines, so exit 1 is right; the summary says what was taken.
            summary = run(
                BINARY, "send", "--url", self.url, "--key", self.key(app), "--format", "json", "-",
                input=sample, check=False)
            accepted = json.loads(summary.stdout or summary.stderr)["accepted"]
            assert accepted > 0, summary
        until("the sample is stored", lambda: self.metric("tapline_events_spooled") == 0 or None)

    def metrics(self):
        return request(self.url + "/metrics")[2].decode()

    def metric(self, name):
        match = re.search(rf"^{name} (\S+)$", self.metrics(), re.MULTILINE)
        if not match:
            raise AssertionError(f"/metrics has no {name}")
        return float(match[1])

    def sql(self, text, options=""):
        """Rows of a query as lists of text, through psql as the reader that Grafana would be."""
        record = pathlib.Path(self.data) / "postgres.socket-dir"
        host = record.read_text() if record.exists() else self.data + "/run"
        outcome = run(
            "psql", "--no-psqlrc", "--quiet", "--csv", "--tuples-only",
            "--set=ON_ERROR_STOP=1", "--command", text,
            f"host={host} port=5432 user=tapline dbname=tapline",
            environment=ENVIRONMENT | {"PGOPTIONS": options})
        return outcome.stdout.decode()
