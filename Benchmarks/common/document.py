"""Tables of figures, and the sections of docs/benchmarks.md that they go into."""
import os
import platform
import re
import shlex
import statistics
import sys
import time


# Before the run adds its own.
LOAD_BEFORE = os.getloadavg()[1]


def log(text):
    print(text, file=sys.stderr, flush=True)


def times(count, word):
    return f"{count} {word}" + ("" if count == 1 else "s")


def machine():
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    memory = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read()).group(1))
    return (f"{os.cpu_count()} cores ({cpu.group(1) if cpu else platform.machine()}), "
            f"{memory / 2**20:.0f} GiB, Linux {platform.release()}")


def heading(what):
    """The line that says when, where and how the figures below it were taken."""
    return (f"{time.strftime('%Y-%m-%d', time.gmtime())}, {machine()}; load before the run "
            f"{LOAD_BEFORE:.1f}; `{invocation()}`; {what}.")


def invocation():
    """The command that is running, without the paths that only this machine has."""
    words, given = [os.path.relpath(sys.argv[0])], iter(sys.argv[1:])
    for word in given:
        if word in ("--binary", "--directory", "--write", "--output"):
            next(given, None)
        else:
            words.append(word)
    return "python3 " + shlex.join(words)


class Table:
    """Figures by name, one value a round; printed as median, least and most."""

    def __init__(self, rows):
        self.rows = rows
        self.rounds = {name: [] for name, _, _ in rows}

    def add(self, figures):
        for name, value in figures.items():
            if name in self.rounds and value is not None:
                self.rounds[name].append(value)
        log("  " + ", ".join(
            f"{name} {form.format(figures[name])}" for name, _, form in self.rows
            if figures.get(name) is not None))

    def median(self, name):
        return statistics.median(self.rounds[name])

    def fallen(self, path, section):
        """The ratios that are more than a tenth below those of a document's section, a text each.

        Ratios are the lines in bold, of which more is better; rates and times are of a machine and an
        hour."""
        begin, end = markers(section)
        with open(path) as file:
            lines = file.read().split(begin, 1)[1].split(end, 1)[0].splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        then = {row[0]: float(row[1]) for row in cells if len(row) > 1 and row[0].startswith("**")}
        if not any(text in then for _, text, _ in self.rows):
            raise ValueError(f"no ratio of this run is in the section {section} of {path}")
        return [f"{text}: {self.median(name):.2f}, was {then[text]:.2f}" for name, text, _ in self.rows
                if text in then and self.rounds[name] and self.median(name) < 0.9 * then[text]]

    def text(self):
        lines = ["| figure | median | least | most | n |", "|---|---|---|---|---|"]
        for name, text, form in self.rows:
            values = self.rounds[name]
            if values:
                lines.append("| " + " | ".join(
                    [text] + [form.format(f(values)) for f in (statistics.median, min, max)]
                    + [str(len(values))]) + " |")
        return "\n".join(lines)


def markers(name):
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def write_section(path, name, text):
    """Puts `text` between the markers of `name` in a document, or at its end."""
    begin, end = markers(name)
    with open(path) as file:
        document = file.read()
    section = f"{begin}\n{text.strip()}\n{end}"
    if begin in document:
        head, rest = document.split(begin, 1)
        document = head + section + rest.split(end, 1)[1]
    else:
        document = document.rstrip() + "\n\n" + section + "\n"
    with open(path, "w") as file:
        file.write(document)
