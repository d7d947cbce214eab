"""A daemon under measurement, its database, and what the kernel says of both."""
import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
ENVIRONMENT = {
    name: value for name, value in os.environ.items()
    if not name.startswith(("TAPLINE_", "PG")) and name != "DATABASE_URL"}


def fail(text):
    sys.exit("bench: " + text)


def temporary(name):
    """A new directory that the user of an embedded database may pass through."""
    directory = tempfile.mkdtemp(prefix=f"tapline-{name}-")
    os.chmod(directory, 0o711)
    return directory


def psql(socket, database="tapline"):
    return ["psql", "-h", socket, "-U", "tapline", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1"]


class Daemon:
    """`tapline serve` on a data directory; on `database` (a conninfo), or on one of its own."""

    def __init__(self, binary, directory, database=None, settings=()):
        os.makedirs(directory, exist_ok=True)
        self.binary, self.directory, self.database = binary, directory, database
        self.log_path = os.path.join(directory, "daemon.log")
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", directory]
        for setting in settings:
            command += ["--set", setting]
        if database:
            command += ["--database", database]
        self.started = time.monotonic()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        try:
            self.port = self._wait_for_port()
            self.key = self.command("key", "create", "--app", "bench").strip()
        except BaseException:
            self.process.terminate()
            raise

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with open(self.log_path) as text:
            return text.read()

    def _wait_for_port(self):
        # A large database may be upgraded first.
        deadline = time.monotonic() + 1800
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"127\.0\.0\.1:(\d+)", self.log())
            if found and int(found.group(1)) > 0:
                return int(found.group(1))
            time.sleep(0.01)
        fail("the daemon did not start:\n" + self.log())

    def command(self, *arguments, check=True):
        """Runs another command of the same binary on the same database."""
        where = ["--database", self.database] if self.database else ["--data-dir", self.directory]
        outcome = subprocess.run(
            [self.binary, *arguments, *where], capture_output=True, text=True, env=ENVIRONMENT)
        if check and outcome.returncode != 0:
            fail(f"tapline {' '.join(arguments)}: {outcome.stdout}{outcome.stderr}")
        return outcome.stdout

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {
            name: float(value)
            for name, value in re.findall(r"^(\w+(?:\{[^}]*\})?) ([-+.\deE]+)$", text, re.M)}

    def refused_connections(self):
        return sum(value for name, value in self.metrics().items()
                   if name.startswith("tapline_http_connections_refused_total"))

    @property
    def socket(self):
        """The directory of the database's socket."""
        if self.database:
            return self.database.split()[0].split("=")[1]
        # A directory that the database's user may not enter has its socket elsewhere.
        record = os.path.join(self.directory, "postgres.socket-dir")
        if os.path.exists(record):
            with open(record) as text:
                return text.read().strip()
        return os.path.join(self.directory, "run")

    @property
    def conninfo(self):
        return self.database or f"host={self.socket} user=tapline dbname=tapline"

    def sql(self, text, database="tapline"):
        return subprocess.run(
            psql(self.socket, database) + ["-c", text], check=True, capture_output=True, text=True,
            env=ENVIRONMENT).stdout.strip()

    def postmaster(self):
        with open(os.path.join(self.directory, "postgres", "data", "postmaster.pid")) as file:
            return int(file.readline())

    @contextlib.contextmanager
    def database_for_others(self):
        """Lets the database run as one that is nobody's: the embedded one stands back behind its daemon.

        Sessions that exist are changed, and new ones are as the postmaster is. Takes root, or CAP_SYS_NICE.
        """
        niceness = os.getpriority(os.PRIO_PROCESS, self.postmaster())
        self._set_database_niceness(0)
        try:
            yield
        finally:
            self._set_database_niceness(niceness)

    def _set_database_niceness(self, niceness):
        postmaster = self.postmaster()
        os.setpriority(os.PRIO_PROCESS, postmaster, niceness)
        with open(f"/proc/{postmaster}/task/{postmaster}/children") as file:
            children = [int(word) for word in file.read().split()]
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, pid, niceness)

    def wait_until_stored(self, events, timeout=600):
        """Waits until the verdicts of this daemon's spool are `events`; returns that moment.

        What is stored is in the reports, too.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            metrics = self.metrics()
            decided = sum(metrics[f"tapline_events_{verdict}_total"]
                          for verdict in ("stored", "duplicate", "conflict", "dead_lettered"))
            if decided >= events:
                return time.monotonic()
            # Seldom, for each look at the metrics costs the daemon half a millisecond.
            time.sleep(0.05)
        fail(f"{events:,.0f} events were not stored within {timeout} s: "
             + json.dumps({name: metrics[name] for name in metrics if "_events_" in name}))

    def post(self, text, key=None):
        """Posts plain NDJSON; returns the status and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(
            "POST", "/v1/events", text, {"Authorization": "Bearer " + (key or self.key)})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body

    def warm_up(self):
        """Sends one event and waits until the database has it.

        The loader knows all keys then, the counts of the spool are read, and the key is cached.
        """
        count = "SELECT coalesce(sum(stored), 0) FROM tapline.spool"
        before = int(self.sql(count))
        status, answer = self.post(
            f'{{"type":"custom","event_uid":"warm-{time.time_ns()}"}}')
        if status != 200:
            fail("the first event was refused: " + answer)
        deadline = time.monotonic() + 1800
        while int(self.sql(count)) == before:
            if time.monotonic() > deadline:
                fail("the first event was not stored")
            time.sleep(0.02)
        while self.decided() < 1:
            time.sleep(0.01)

    def settle(self, timeout=300):
        """Waits until what is done later for stored events is done.

        No segment is being closed, and the keeper's session (which also vacuums and freezes a
        segment after that) has nothing to do for a second.
        """
        busy = ("SELECT (SELECT count(*) FROM tapline.segment WHERE state = 'closing') + "
                "(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tapline keep' "
                "AND state <> 'idle')")
        deadline, quiet = time.monotonic() + timeout, 0
        while quiet < 4:
            if time.monotonic() > deadline:
                fail(f"a segment was still being closed after {timeout} s")
            quiet = quiet + 1 if self.sql(busy) == "0" else 0
            time.sleep(0.25)

    def decided(self):
        """Verdicts of the database on this daemon's spool, as the daemon knows them.

        They go on after a restart, but are zero until the loader has read them: see `warm_up`.
        """
        metrics = self.metrics()
        return sum(metrics[f"tapline_events_{verdict}_total"]
                   for verdict in ("stored", "duplicate", "conflict", "dead_lettered"))

    def require_balance(self):
        outcome = subprocess.run(
            [self.binary, "check", "--data-dir", self.directory, "--format", "json"]
            + (["--database", self.database] if self.database else []),
            capture_output=True, text=True, env=ENVIRONMENT)
        if outcome.returncode != 0:
            fail("the books do not balance: " + outcome.stdout + outcome.stderr)
        return json.loads(outcome.stdout)

    def stop(self):
        self.process.terminate()
        self.process.wait(120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


class Fresh(Daemon):
    """A daemon in a new directory that goes away with it."""

    def __init__(self, binary, database=None, settings=()):
        self.parent = temporary("bench")
        super().__init__(binary, os.path.join(self.parent, "data"), database, settings)

    def __exit__(self, *details):
        try:
            super().__exit__(*details)
        finally:
            shutil.rmtree(self.parent, ignore_errors=True)


class LoaderHeld:
    """Holds the row that every load transaction locks first."""

    def __init__(self, daemon):
        self.process = subprocess.Popen(
            psql(daemon.socket), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=ENVIRONMENT)

    def __enter__(self):
        self.process.stdin.write("BEGIN;\nSELECT 'held' FROM tapline.turn FOR UPDATE;\n")
        self.process.stdin.flush()
        if self.process.stdout.readline().strip() != "held":
            fail("the loader could not be held")

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def _stat(path):
    with open(path + "/stat") as stat:
        return [int(field) if field.lstrip("-").isdigit() else field
                for field in stat.read().rsplit(")", 1)[1].split()]


def cpu_seconds(pid):
    fields = _stat(f"/proc/{pid}")
    return (fields[11] + fields[12]) / TICKS


def thread_cpu_seconds(pid):
    """CPU by name of thread."""
    seconds = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        path = f"/proc/{pid}/task/{thread}"
        try:
            with open(path + "/comm") as comm:
                name = comm.read().strip()
            fields = _stat(path)
        except OSError:
            continue
        seconds[name] = seconds.get(name, 0) + (fields[11] + fields[12]) / TICKS
    return seconds


def database_cpu_seconds(postmaster):
    """CPU of one PostgreSQL: the postmaster, its children, and those that have ended."""
    fields = _stat(f"/proc/{postmaster}")
    ticks = sum(fields[11:15])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = _stat(f"/proc/{pid}")
        except OSError:
            continue
        if fields[1] == postmaster:
            ticks += fields[11] + fields[12]
    return ticks / TICKS


def memory_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

