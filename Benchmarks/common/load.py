"""Runs load.c, the load generator, which this builds when it is older than its source."""
import json
import os
import subprocess

from common.daemon import fail

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Where what is built for benchmarks lives; `make clean` removes it.
BUILD = os.path.join(ROOT, ".build", "bench")


def program():
    source, binary = os.path.join(HERE, "load.c"), os.path.join(BUILD, "load")
    if not os.path.exists(binary) or os.path.getmtime(binary) < os.path.getmtime(source):
        os.makedirs(BUILD, exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-o", binary, source], check=True)
    return binary


class Load:
    """A load under way; `wait` gives the figures that load.c prints."""

    def __init__(self, ports, key, bodies, connections=8, rate=None, seconds=None, plain=False,
                 repeat=False):
        ports = ports if isinstance(ports, (list, tuple)) else [ports]
        command = [program(), "--ports", ",".join(map(str, ports)), "--key", key,
                   "--connections", str(connections)]
        if rate:
            command += ["--rate", f"{rate:.3f}"]
        if seconds:
            command += ["--seconds", str(seconds)]
        command += ["--plain"] if plain else []
        command += ["--repeat"] if repeat else []
        self.process = subprocess.Popen(command + [bodies], stdout=subprocess.PIPE, text=True)

    def running(self):
        return self.process.poll() is None

    def wait(self, failures_allowed=False):
        text = self.process.communicate()[0]
        if self.process.returncode != 0:
            fail(f"the load generator ended with {self.process.returncode}")
        figures = json.loads(text)
        if figures["failed"] and not failures_allowed:
            fail(f"{figures['failed']} bodies were refused, the first with: {figures['failure']}")
        return figures


def post(ports, key, bodies, **options):
    return Load(ports, key, bodies, **options).wait()
