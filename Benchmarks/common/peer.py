"""Runs Benchmarks/peers/server.py in the virtual environment that `make bench-compare` makes."""
import http.client
import os
import socket
import subprocess
import time

from common.daemon import ENVIRONMENT, fail
from common.load import BUILD, ROOT

PYTHON = os.path.join(BUILD, "python", "bin")
FOLDER = os.path.join(ROOT, "Benchmarks", "peers")
SERVERS = {
    "granian": ["granian", "--interface", "asgi", "--workers", "2", "--no-ws",
                "--log-level", "warning", "--no-access-log", "--host", "127.0.0.1"],
    "uvicorn": ["uvicorn", "--workers", "2", "--log-level", "warning", "--no-access-log",
                "--host", "127.0.0.1"],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Peer:
    """The peer with two workers, on a new database of its own beside the one of `daemon`."""

    def __init__(self, daemon, server="granian"):
        self.daemon, self.key, self.port = daemon, "peer-key", free_port()
        self.database = f"peer_{time.monotonic_ns()}"
        daemon.sql(f"CREATE DATABASE {self.database}")
        command = SERVERS[server]
        self.log_path = os.path.join(daemon.directory, "peer.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(PYTHON, command[0]), *command[1:], "--port", str(self.port),
                 "server:app"], cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=ENVIRONMENT | {
                    "PEER_KEY": self.key, "PYTHONDONTWRITEBYTECODE": "1",
                    "PEER_DATABASE":
                        f"postgresql://tapline@/{self.database}?host={daemon.socket}"})
        deadline = time.monotonic() + 60
        # Both workers have to be there before anything is measured: their pools of 8 show it.
        while daemon.sql("SELECT count(*) FROM pg_stat_activity "
                         f"WHERE datname = '{self.database}'") != "16":
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.__exit__()
                fail("the peer did not start:\n" + open(self.log_path).read())
            time.sleep(0.1)

    def post(self, body, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", "/v1/events", body,
                           {"Authorization": "Bearer " + self.key} | (headers or {}))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def rows(self):
        return int(self.daemon.sql("SELECT count(*) FROM event", self.database))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.daemon.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
