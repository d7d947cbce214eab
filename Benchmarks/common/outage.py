"""A database that goes away and comes back, and what the daemon does meanwhile."""
import os
import signal
import subprocess
import time

from common import load
from common.daemon import Daemon, Fresh, fail, memory_mb


class Away:
    """A daemon whose database another daemon embeds, so that it can go away.

    The other daemon is idle. It is stopped for an outage, its database with it; the socket of each
    start is elsewhere, so the daemon under measurement goes through a link.
    """

    def __init__(self, binary):
        self.keeper = Fresh(binary)
        self.link = os.path.join(self.keeper.parent, "socket")
        self._point()
        self.one = Fresh(binary, database=f"host={self.link} user=tapline dbname=tapline")
        # A key that is new to a daemon cannot be looked up while the database is down.
        self.one.warm_up()

    def _point(self):
        if os.path.lexists(self.link):
            os.unlink(self.link)
        os.symlink(self.keeper.socket, self.link)

    def stop(self):
        self.keeper.stop()

    def start(self):
        restarted = Daemon(self.keeper.binary, self.keeper.directory)
        self.keeper.process, self.keeper.port = restarted.process, restarted.port
        self._point()

    def kill(self, timeout=120):
        """Kills PostgreSQL, and waits until the daemon that embeds it has started it again."""
        victim = self.keeper.postmaster()
        os.kill(victim, signal.SIGKILL)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                if self.keeper.postmaster() != victim and self.keeper.sql("SELECT 1") == "1":
                    return self._point()
            except (OSError, ValueError, subprocess.CalledProcessError):
                pass
            time.sleep(0.1)
        fail(f"PostgreSQL was not started again within {timeout} s")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.one.__exit__()
        self.keeper.__exit__()


def drain(binary, spooled, coming, rate):
    """Events/s stored from the return of the database until the spool is empty.

    `spooled` is posted while the database is down; `coming` is posted at `rate` events/s while the
    spool drains, and does not end before.
    """
    with Away(binary) as away:
        one = away.one
        away.stop()
        posted = load.post(one.port, one.key, spooled)["events"]
        away.start()
        base = one.decided()
        ingest = load.Load(one.port, one.key, coming, rate=rate / 1000)
        # From the first batch, for how soon the daemon tries again is a setting, not a rate.
        while (first := one.decided()) == base:
            time.sleep(0.02)
        began = time.monotonic()
        # A batch that has just come is waited for on purpose: what is younger is no backlog.
        while (metrics := one.metrics())["tapline_events_spooled"] > rate / 4:
            if not ingest.running():
                break
            time.sleep(0.05)
        seconds = time.monotonic() - began
        drained = one.decided() - first
        posted += ingest.wait()["events"]
        one.wait_until_stored(base + posted)
        return drained / seconds


def memory(binary, bodies, rate, seconds):
    """Memory of the daemon and depth of the spool, sampled while the database is down under load."""
    samples = []
    with Away(binary) as away:
        one = away.one
        away.stop()
        samples.append((0.0, 0.0, 0.0, memory_mb(one.pid)))
        began = time.monotonic()
        ingest = load.Load(one.port, one.key, bodies, rate=rate / 1000, seconds=seconds, repeat=True)
        while ingest.running():
            time.sleep(max(1, seconds / 60))
            metrics = one.metrics()
            samples.append((
                time.monotonic() - began, metrics["tapline_events_spooled"] / 1e6,
                metrics["tapline_spool_unloaded_bytes"] / 2**20, memory_mb(one.pid)))
        ingest.wait()
    return samples


def text(samples):
    """A table of about six depths, and what an hour would be if memory went on as it did."""
    chosen = [samples[round(part * (len(samples) - 1) / 6)] for part in range(7)]
    lines = ["With the database down, at half the stored rate:", "",
             "| s | million events in the spool | spool, MB | memory of the daemon, MB |",
             "|---|---|---|---|"]
    lines += [f"| {at:.0f} | {count:.2f} | {size:,.0f} | {rss:.0f} |" for at, count, size, rss in chosen]
    # The start has the buffers of the first bodies in it, so growth is taken from the second half.
    middle, last = samples[len(samples) // 2], samples[-1]
    growth = (last[3] - middle[3]) / (last[0] - middle[0]) if last[0] > middle[0] else 0
    lines += ["", f"Between {middle[0]:.0f} s and {last[0]:.0f} s memory grew by {growth * 60:.1f} MB a "
              f"minute; an hour was not run. At that growth it would be at "
              f"{last[3] + max(0, growth) * (3600 - last[0]):.0f} MB."]
    return "\n".join(lines)
