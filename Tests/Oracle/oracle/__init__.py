"""A second opinion on reports: generated events, and what a report of them has to say.

Plain and slow; no code of it is the daemon's or its SQL's. It is written from the documents, but
what these left open and sql/report had already decided is taken over from there, and so is not
checked independently: `oracle.report` marks it (s). Standard library only. The rules are numbered
in `oracle.report`; the tests beside this package run with `python3 -B -m unittest` in their
directory.
"""
