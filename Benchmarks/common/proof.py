"""`tapline bench` as a load that is proved afterwards, and what the daemon uses meanwhile."""
import json
import os
import subprocess
import time

from common import daemon


class Run:
    """A `tapline bench` under way against one daemon."""

    def __init__(self, binary, one, events, rate, name, options=()):
        self.binary, self.one = binary, one
        self.log = os.path.join(one.parent, name + ".log")
        command = [binary, "bench", "--url", f"http://127.0.0.1:{one.port}", "--key", one.key,
                   "--events", str(events), "--log", self.log, "--format", "json", *options]
        if rate:
            command += ["--rate", str(rate)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def running(self):
        return self.process.poll() is None

    def finish(self, seconds=600):
        output, _ = self.process.communicate(timeout=seconds)
        if self.process.returncode != 0:
            daemon.fail(f"tapline bench ended with {self.process.returncode}: {output}")
        return json.loads(output)

    def verify(self, with_daemon=False, seconds=1800):
        """Holds the database against the log; with the daemon, L5 and L6 too."""
        command = [self.binary, "bench", "--verify", "--log", self.log, "--database",
                   self.one.database, "--data-dir", self.one.directory, "--format", "json"]
        if with_daemon:
            command += ["--url", f"http://127.0.0.1:{self.one.port}", "--key", self.one.key]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        if outcome.returncode != 0:
            daemon.fail(f"a law is broken: {outcome.stdout}{outcome.stderr}")
        return json.loads(outcome.stdout)


class Peak:
    """The memory of the daemon, sampled as often as it is asked."""

    def __init__(self, one):
        self.one, self.most = one, 0.0

    def sample(self):
        self.most = max(self.most, daemon.memory_mb(self.one.pid))
        time.sleep(0.2)
        return self.most
