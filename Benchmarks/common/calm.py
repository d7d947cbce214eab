"""Measuring where others take the processors, too: a hypervisor gives a virtual machine what it has left.

What it gives away to others comes in bursts of minutes, and hits what happens to be measured then. So a part that
lost more than a twentieth is measured again, whatever its figures are, and how much was lost is in the table.
"""
from common.document import log

LOST_MAX = 0.05
TRIES = 3

ROW = ("lost", "CPU that the hypervisor gave to others meanwhile, % (above 5 a part is measured again, "
       f"{TRIES} times at most)", "{:.1f}")


def _ticks():
    """Ticks of all processors that were lost, and those that were not idle, lost ones included."""
    with open("/proc/stat") as stat:
        # user, nice, system, idle, iowait, irq, softirq, steal; proc(5).
        fields = [int(word) for word in stat.readline().split()[1:9]]
    return fields[7], sum(fields) - fields[3] - fields[4]


def measured(name, measure):
    """The figures of a part, and `lost`: which share of the time that was wanted was lost, in percent."""
    for attempt in range(1, TRIES + 1):
        lost, busy = _ticks()
        figures = measure()
        now = _ticks()
        share = (now[0] - lost) / max(1, now[1] - busy)
        if share <= LOST_MAX or attempt == TRIES:
            return figures | {"lost": max(100 * share, figures.get("lost", 0))}
        log(f"  {name}: {100 * share:.1f} % of the CPU went to others, once more")
