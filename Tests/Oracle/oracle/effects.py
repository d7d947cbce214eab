"""What devices did after a message: influence, conversion, time to open (rules 14 to 19)."""
import bisect
import collections

from oracle import times
from oracle.units import OBSERVING

INFLUENCE = 12 * times.HOUR
CONVERSION = 24 * times.HOUR
CLICK_NEARNESS = 5 * times.SECOND


class Device:
    """The life of one device in one app, each list in order."""

    def __init__(self):
        self.units, self.clicks, self.launches, self.conversions = [], [], [], []


def decide(units, events, window=CONVERSION):
    """Sets `influencing_launch` and `is_converted` of the units: within that long after a click."""
    for device in _devices(units, events).values():
        _influence(device)
        _convert(device, window)


def _devices(units, events):
    devices = collections.defaultdict(Device)
    owner = {}
    for unit in units:
        if unit.device is None:
            continue
        device = devices[unit.app, unit.device]
        device.units.append(unit)
        device.clicks += [(*e.order, unit) for e in unit.clicks]
        owner.update((e.key, unit.device) for e in unit.events)
    for event in events:
        name = event.device_id or owner.get(event.key)
        if name is not None and event.type in ("launch", "conversion"):
            device = devices[event.app, name]
            (device.launches if event.type == "launch" else device.conversions).append(event.time)
    for device in devices.values():
        device.clicks.sort(key=lambda c: c[:2])
        device.launches.sort()
        device.conversions.sort()
    return devices


def _influence(device):
    clicks = [time for time, _, _ in device.clicks]

    def is_near_click(launch):
        after = bisect.bisect_left(clicks, launch - CLICK_NEARNESS)
        return after < len(clicks) and clicks[after] <= launch + CLICK_NEARNESS

    launches = [time for time in device.launches if not is_near_click(time)]
    shown = sorted(
        u.shown_at for u in device.units
        if u.is_delivered and not u.is_silent and u.shown_at is not None)
    for unit in device.units:
        start = unit.shown_at
        if start is None or not unit.is_delivered or unit.clicks:
            continue
        next_launch = bisect.bisect_right(launches, start)
        if next_launch == len(launches) or launches[next_launch] > start + INFLUENCE:
            continue
        launch = launches[next_launch]
        newer = bisect.bisect_right(shown, start)
        if newer == len(shown) or shown[newer] >= launch:
            unit.influencing_launch = launch


def _convert(device, window):
    clicks = [time for time, _, _ in device.clicks]
    for conversion in device.conversions:
        last = bisect.bisect_right(clicks, conversion) - 1
        if last >= 0 and conversion - clicks[last] <= window:
            device.clicks[last][2].is_converted = True


def time_to_open(unit):
    """Microseconds from receipt to click by the device's clock, perhaps negative, or None."""
    seen = unit.first(OBSERVING)
    if unit.device is None or not unit.clicks or seen is None:
        return None
    click = unit.clicks[0]
    if "server" in (click.time_rule, seen.time_rule):
        return None
    return click.occurred - seen.occurred
