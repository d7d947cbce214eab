#!/usr/bin/env python3
"""Writes a set of generated events, and what is known today of their devices: `oracle.events`.

With --reports also which reports to ask for: `oracle.asked`.
"""
import argparse
import json
import pathlib
import random

from oracle import asked as wanted, events


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--free-of-arrival", action="store_true",
                        help="no result depends on the order of loading")
    parser.add_argument("--reports", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    made = events.Generator(asked.seed, asked.events, asked.free_of_arrival)
    reports = wanted.reports(
        random.Random(asked.seed), asked.reports, made.envelopes, not asked.free_of_arrival)
    asked.directory.mkdir(parents=True, exist_ok=True)
    for name, lines in [("events", made.envelopes), ("devices", made.registrations()),
                        ("categories", events.categories()),
                        ("test_devices", made.test_devices()), ("asked", reports)]:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (asked.directory / f"{name}.ndjson").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
