"""Events to units: one message on one device, and what belongs to it (rules 1 to 9)."""
import collections

from oracle.lines import INBOX

OBSERVING = frozenset(["received", "displayed", "consumed", "confirmed"])
DEVICE_DIMENSIONS = (
    "platform", "app_version", "os_version", "locale", "country", "provider", "push_group")
UNATTRIBUTED = "(unattributed)"


class Unit:
    """A message on a device: all its events in order, and what is decided from all of them."""

    def __init__(self, app, message, device, events):
        self.app, self.message, self.device = app, message, device
        self.events = sorted(events, key=lambda e: e.order)
        self.clicks = []
        self.campaign = UNATTRIBUTED
        self.campaign_mismatch = self.sent_unknown = self.failed_unknown = False
        self.is_test = self.is_silent = False
        self.values = {}
        self.topics = []
        self.influencing_launch = None
        self.is_converted = False

    @property
    def first_at(self):
        """Its first sight: the earliest `sent`, else the earliest event."""
        sents = [e for e in self.events if e.type == "sent"]
        return (sents or self.events)[0].time

    def first(self, types):
        """The earliest event of these types, or None."""
        return next((e for e in self.events if e.type in types), None)

    @property
    def shown_at(self):
        """t0 of rule 14: the first evidence that it was there, else when it was sent, else None."""
        event = self.first(OBSERVING) or self.first(("sent",))
        return None if event is None else event.time

    @property
    def is_delivered(self):
        return bool(self.clicks) or self.first(
            OBSERVING | {"action", "dismissed", "inbox_open"}) is not None


def of(events, today):
    """All units of the events."""
    messages = collections.defaultdict(list)
    for event in events:
        if event.message_uid is not None:
            messages[event.app, event.message_uid].append(event)
    placed, unsure = _placed(messages)
    units = [Unit(*key, members) for key, members in _joined(placed).items()]
    for unit in units:
        _decide(unit, messages, unsure, today)
    return units


def _placed(messages):
    """Pairs of event and device; and by message the types of events that nobody owns."""
    placed, unsure = [], collections.defaultdict(set)
    for message, events in messages.items():
        devices = {e.device_id for e in events} - {None}
        for event in events:
            device = event.device_id
            if device is None and len(devices) == 1:
                [device] = devices
            if device is None and len(devices) > 1 and event.type in ("sent", "failed"):
                unsure[message].add(event.type)
            else:
                placed.append((event, device))
    return placed, unsure


def _joined(placed):
    """The events of each unit, inbox events with the push that names their message."""
    naming = collections.defaultdict(list)
    for event, device in placed:
        if event.type not in INBOX and event.inbox_message_uid is not None:
            naming[event.app, device, event.inbox_message_uid].append(event)
    units = collections.defaultdict(list)
    for event, device in placed:
        message = event.message_uid
        if event.type in INBOX:
            ids = {event.message_uid, event.inbox_message_uid} - {None}
            pushes = [e for name in ids for e in naming.get((event.app, device, name), ())]
            if pushes:
                message = min(pushes, key=lambda e: e.order).message_uid
        units[event.app, message, device].append(event)
    return units


def _decide(unit, messages, unsure, today):
    events = unit.events
    key = unit.app, unit.message
    unit.clicks = [e for e in events if today.is_click(e)]
    unit.sent_unknown = key in unsure
    unit.failed_unknown = "failed" in unsure.get(key, ())
    unit.is_test = any(e.is_test for e in events) \
        or (unit.app, unit.device) in today.test_devices
    unit.is_silent = any(e.silent for e in events)
    unit.campaign_mismatch = len({e.campaign_id for e in events} - {None}) > 1
    unit.campaign = _campaign(events, messages[key]) or UNATTRIBUTED
    for name in DEVICE_DIMENSIONS:
        said = _earliest(events, lambda e: _property(e, name) if name == "push_group"
                         else getattr(e, name))
        unit.values[name] = said if said is not None else today.of_device(
            unit.app, unit.device, name)
    unit.values["category"] = _earliest(events, lambda e: e.category_id)
    topic = _earliest(events, lambda e: _property(e, "topic"))
    unit.topics = [topic] if topic is not None else sorted(
        set(today.of_device(unit.app, unit.device, "topics") or [])) or [None]


def _campaign(events, of_message):
    def named(candidates):
        return _earliest(candidates, lambda e: e.campaign_id)
    return named([e for e in events if e.type == "sent"]) or named(events) or named(
        sorted((e for e in of_message if e.type == "sent"), key=lambda e: e.order))


def _earliest(events, value):
    """What the first of the events that says anything says; they are in order."""
    return next((found for e in events if (found := value(e)) is not None), None)


def _property(event, name):
    """A member of the properties that is a text which is not empty."""
    value = (event.properties or {}).get(name)
    return value if type(value) is str and value else None
