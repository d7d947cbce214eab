#!/usr/bin/env python3
"""How fast a file grows durably, through the page cache and past it: each append with its fdatasync.

The first of the rounds tells what fresh memory costs, if free memory has gone back to the host.
"""
import argparse
import mmap
import os
import statistics
import tempfile
import time

FILE_BYTES = 64 << 20


def append(path, block, flags):
    """Writes the block until the file is full; MB/s, and the median of write and sync in ms."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o600)
    times = []
    for offset in range(0, FILE_BYTES, len(block)):
        before = time.perf_counter()
        os.pwrite(file, block, offset)
        os.fdatasync(file)
        times.append(time.perf_counter() - before)
    os.close(file)
    os.unlink(path)
    return FILE_BYTES / sum(times) / 1e6, statistics.median(times) * 1e3


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--directory", default=".", help="on the disk that is asked about")
    options.add_argument("--append-bytes", type=int, default=2 << 20, help="a multiple of 4096")
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    # Of whole pages, as O_DIRECT wants it.
    block = mmap.mmap(-1, chosen.append_bytes)
    block.write(os.urandom(chosen.append_bytes))
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
        for number in range(chosen.rounds):
            for name, flags in (("through the page cache", 0), ("past it", os.O_DIRECT)):
                rate, milliseconds = append(os.path.join(directory, "appends"), block, flags)
                print(f"round {number + 1}, {name}: {rate:,.0f} MB/s, {milliseconds:.2f} ms each")


if __name__ == "__main__":
    main()
