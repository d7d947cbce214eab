"""Measuring where a hypervisor gives a virtual machine what it has left.

What it does not give comes in bursts of minutes, and hits what happens to be measured then. So a part that lost
more than a twentieth is measured again, whatever its figures are; the attempt that lost least counts, and how
much it lost is in the table.
"""
from common.document import log

LOST_MAX = 0.05
TRIES = 3

ROW = ("lost", "CPU that was wanted meanwhile and the hypervisor did not give, % (above 5 a part is measured "
       "again, up to twice)", "{:.1f}")


def _ticks():
    """Ticks of all processors that were not given, and those that were not idle, these included."""
    with open("/proc/stat") as stat:
        # user, nice, system, idle, iowait, irq, softirq, steal; proc(5).
        fields = [int(word) for word in stat.readline().split()[1:9]]
    return fields[7], sum(fields) - fields[3] - fields[4]


def measured(name, measure):
    """The figures of a part, and `lost`: which share of the time that was wanted was not given, in percent."""
    attempts = []
    while len(attempts) < TRIES and (not attempts or attempts[-1]["lost"] > 100 * LOST_MAX):
        if attempts:
            log(f"  {name}: {attempts[-1]['lost']:.1f} % of the CPU was not given, once more")
        lost, wanted = _ticks()
        figures = measure()
        now = _ticks()
        attempts.append(figures | {"lost": 100 * (now[0] - lost) / max(1, now[1] - wanted)})
    return min(attempts, key=lambda attempt: attempt["lost"])
