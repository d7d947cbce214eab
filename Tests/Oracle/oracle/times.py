"""Times as clients write them, and the time of an event: docs/events.md, "Time".

All times are whole microseconds since 1970 UTC.
"""
import datetime
import decimal
import re

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

SKEW_MIN = 2 * SECOND
PAST_MAX = 315_576_000 * SECOND  # Ten years of 365.25 days.
FUTURE_MAX = 300 * SECOND
FIRST, LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1  # The years 1 to 9999.

RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?"
    r"(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)", re.ASCII)
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


def parse(text):
    """The time that a client wrote, or None where it says nothing usable."""
    match = RFC3339.fullmatch(text)
    time = _date(match) if match else _epoch(text)
    return time if time is not None and FIRST <= time <= LAST else None


def _date(match):
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    nanoseconds = int((match[7] or "0").ljust(9, "0"))
    try:
        days = (datetime.datetime(year, month, day, tzinfo=UTC) - EPOCH).days
    except ValueError:
        return None
    if minute > 59 or second > 60 or hour > 24 or hour == 24 and (minute or second or nanoseconds):
        return None
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    if match[8]:
        hours, minutes = int(match[9]), int(match[10] or 0)
        if hours > 23 or minutes > 59:
            return None
        seconds -= (hours * 3600 + minutes * 60) * (1 if match[8] == "+" else -1)
    return seconds * SECOND + (nanoseconds + 500) // 1000


def _epoch(text):
    if not NUMBER.fullmatch(text):
        return None
    number = decimal.Decimal(text)
    for digits, exponent in ((11, 6), (14, 3), (17, 0), (20, -3)):
        if abs(number) < 10 ** digits:
            return int(number.scaleb(exponent).to_integral_value(decimal.ROUND_HALF_UP))
    return None


def of_event(occurred, sent, received):
    """When it happened, and the rule that says so: `corrected`, else `device`, else `server`."""
    def plausible(time):
        return received - PAST_MAX <= time <= received + FUTURE_MAX
    if occurred is None:
        return received, "server"
    if sent is not None and sent >= occurred and abs(received - sent) > SKEW_MIN:
        corrected = received - (sent - occurred)
        if plausible(corrected):
            return corrected, "corrected"
    return (occurred, "device") if plausible(occurred) else (received, "server")


def local(time, zone):
    """The time as a datetime of the zone."""
    return (EPOCH + datetime.timedelta(microseconds=time)).astimezone(zone)


def midnight(year, month, day, zone):
    """When the day begins in the zone."""
    begin = datetime.datetime(year, month, day, tzinfo=zone).astimezone(UTC)
    return (begin - EPOCH) // datetime.timedelta(microseconds=1)


def text(time, zone=UTC):
    """RFC 3339, with a fraction only where there is one."""
    written = local(time, zone).isoformat()
    return written.removesuffix("+00:00") + "Z" if zone is UTC else written


def option(value, zone):
    """A time as an option names it: a date is midnight in the zone; else as a client writes it."""
    if match := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", value, re.ASCII):
        return midnight(*map(int, match.groups()), zone)
    time = parse(value)
    if time is None:
        raise ValueError(f'"{value}" is no time')
    return time


def offset(local_time):
    """±hh:mm of a local time."""
    seconds = int(local_time.utcoffset().total_seconds())
    hours, rest = divmod(abs(seconds), 3600)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"


def day_label(time, zone):
    return local(time, zone).strftime("%Y-%m-%d")


def hour_label(time, zone):
    """The hour of the zone's clock, with the offset that held at that time."""
    at = local(time, zone)
    return at.strftime("%Y-%m-%dT%H:00") + offset(at)
