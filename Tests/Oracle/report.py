#!/usr/bin/env python3
"""The report of a file of events; the rules and options are those of `oracle.report`."""
import sys

from oracle.report import main

if __name__ == "__main__":
    sys.exit(main())
