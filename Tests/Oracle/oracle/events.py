"""Events as SDKs send them, with everything that makes a report hard: from a seed, always the same.

    python3 Tests/Oracle/generate.py --events N --seed S --directory DIR

writes DIR/events.ndjson (envelopes of `oracle.lines`, in the order of loading), and what is known
today: DIR/devices.ndjson, DIR/categories.ndjson, DIR/test_devices.ndjson (`oracle.today`).

Messages fall around both changes of the clock, in Berlin and in New York. A message is a `Story`:
what its sender, its device and its user say about it, each with some chance of being wrong,
missing, late or said twice. Few devices have many messages, so that launches, clicks and
conversions of one meet those of another; edges (12 h, 24 h, 5 s, midnight, equal times) are hit
exactly and by a microsecond.
"""
import json
import random
import uuid

from oracle import times
from oracle.times import HOUR, SECOND

MINUTE = 60 * SECOND
PERIODS = [("2026-03-07T00:00:00Z", "2026-03-30T12:00:00Z"),
           ("2026-10-23T00:00:00Z", "2026-11-02T12:00:00Z")]
# Hours that come twice or never, midnights of the zones, and the quarter hours around them.
EDGES = [
    "2026-03-08T07:00:00Z", "2026-03-29T01:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z",
    "2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-03-28T18:30:00Z", "2026-03-28T23:00:00Z",
    "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-11-01T04:00:00Z", "2026-03-15T00:00:00Z"]
# The app of each key: who logs `sent`, and how.
APPS = ["shop", "news", "games", "Shop"]
SENT = {"shop": "with device", "news": "without device", "Shop": "mixed"}
# How often a message has several devices: with some forms of `sent` that makes SENT unknown.
SEVERAL = {"shop": 0.2, "news": 0.01, "games": 0.2, "Shop": 0.02}
CAMPAIGNS = ["spring", "Spring", "welcome", "42", "sale:7", "ünïcode", "untapped"]
# Of this campaign no tap is ever reported, and of this version few are.
UNTAPPED, SELDOM_TAPPED = "untapped", "6.0.0-b1"
WORDS = {
    "sent": ["sent", "SENT"], "failed": ["failed"], "displayed": ["displayed", "Displayed"],
    "received": ["received", "pushreceived", "push_receive", "Delivered"],
    "consumed": ["consumed", "CONSUMED"], "confirmed": ["confirmed"],
    "clicked": ["clicked", "clickthru", "Click", "open", "OPENED"], "action": ["action", "button"],
    "dismissed": ["dismissed", "dismiss"], "inbox_open": ["inbox_open", "inboxopen"]}
ALIASES = {word.lower(): kind for kind, words in WORDS.items() for word in words}
BUTTONS = [("offer", "buy"), ("offer", "later"), ("reply", "yes"), ("reply", "later"),
           (None, "buy"), ("offer", None)]
VALUES = {
    "platform": ["ios", "android", "web", "iOS"], "app_version": ["5.9", "5.10", "5.10.1", "6.0.0-b1"],
    "os_version": ["17.1", "14"], "locale": ["de_DE", "en_US", "pt"], "country": ["DE", "US", "IN"],
    "provider": ["apns", "fcm", "test"]}
GROUPS, TOPICS = ["beta", "vip"], ["football", "weather", "Sale"]


def categories():
    """What the category table says; the rest of the buttons are not in it."""
    return [{"app": app, "category_id": category, "action_id": action, "opens_app": opens}
            for app in APPS[:3]
            for category, action, opens in [("offer", "buy", True), ("offer", "later", False),
                                            ("reply", "yes", True)]]


class Device:
    """A device of an app, what it says of itself, and how its clock is wrong."""

    def __init__(self, chance, app, name):
        self.app, self.name = app, name
        self.values = {field: chance.choice(some) for field, some in VALUES.items()}
        if self.values["app_version"] == "5.10.1" and chance.random() < 0.9:
            # A version that few have.
            self.values["app_version"] = "6.0.0-b1"
        self.group = chance.choice([None, None, *GROUPS])
        self.topics = chance.sample(TOPICS, chance.choice([0, 0, 1, 2, 3]))
        self.skew = chance.choice([0] * 8 + [-3 * MINUTE, 90 * 24 * HOUR])
        self.sends_sent_at = self.skew != 0 and chance.random() < 0.8
        self.has_event_uids = chance.random() < 0.6

    def registration(self, chance):
        found = {"app": self.app, "device_id": self.name, "topics": self.topics}
        found |= {f: v.lower() if f == "platform" else v for f, v in self.values.items()
                  if chance.random() < 0.7}
        return found | ({"push_group": self.group} if self.group else {})


class Generator:
    """A set of events and of what is known of their devices."""

    def __init__(self, seed, count, is_free_of_arrival=False):
        """With `is_free_of_arrival` no result depends on the order of loading (docs/reports.md)."""
        self.chance = random.Random(seed)
        self.is_free_of_arrival = is_free_of_arrival
        self.envelopes = []
        self.posted = set()
        size = max(8, count // 60)
        self.devices = [
            # The same name in several apps is several devices.
            Device(self.chance, APPS[i % 4] if i % 8 else "shop", f"Device-{i // 2}")
            for i in range(size)]
        while len(self.envelopes) < count:
            Story(self).tell()
        del self.envelopes[count:]
        self._load()

    def registrations(self):
        """Of devices; some never registered."""
        return [d.registration(self.chance) for d in {
            (d.app, d.name): d for d in self.devices}.values() if self.chance.random() < 0.6]

    def test_devices(self):
        marked = {(d.app, d.name) for d in self.devices[::23]}
        return [{"app": app, "device_id": name} for app, name in sorted(marked)]

    def time(self):
        """When a message is sent."""
        if self.chance.random() < 0.1:
            return times.parse(self.chance.choice(EDGES)) \
                + self.chance.choice([-1, 0, 0, 1, -MINUTE, 15 * MINUTE])
        first, last = map(times.parse, self.chance.choice(PERIODS))
        time = self.chance.randrange(first, last)
        return time - time % SECOND if self.chance.random() < 0.5 else time

    def uid(self):
        """A UUID; the other case of it must be the same."""
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def cased(self, uid):
        return uid.upper() if self.chance.random() < 0.3 else uid

    def written(self, time):
        """The time in one of the ways of clients, exact to the microsecond."""
        if time % SECOND == 0 and self.chance.random() < 0.2:
            return time // SECOND
        if time % 1000 == 0 and self.chance.random() < 0.3:
            return str(time // 1000)
        if self.chance.random() < 0.2:
            return time
        hours = self.chance.choice([0, 0, 5, -4])
        text = times.text(time + hours * HOUR)
        return text[:-1] + f"{'-' if hours < 0 else '+'}{abs(hours):02}:00" if hours else text

    def post(self, app, event, time, device=None):
        """Sends an event that happened at `time`, perhaps late, perhaps twice."""
        chance = self.chance
        if self.is_free_of_arrival:
            self._tell_apart(app, event)
        delay = chance.choice([0, 1, SECOND, 40 * SECOND, 40 * SECOND])
        if chance.random() < 0.05:
            delay = chance.choice([24 * HOUR, 24 * HOUR + 1, 26 * HOUR, 20 * 24 * HOUR])
        received = time + delay
        skew = device.skew if device else 0
        envelope = {"app": app, "received_at": times.text(received)}
        kind = chance.random()
        if kind < 0.90 or self.is_free_of_arrival or "conversion" in str(event.get("type")):
            event["occurred_at"] = self.written(time + skew)
        elif kind < 0.92:
            event["timestamp"] = chance.choice(
                ["now", "0001-01-01T00:00:00Z", 0, "2026-13-01T00:00:00Z"])
        elif event["type"] not in ("sent",) and "message_uid" not in event:
            event["time"] = self.written(time)
        if device and device.sends_sent_at:
            sent = self.written(received + skew)
            if chance.random() < 0.5:
                event["sent_at"] = sent
            else:
                envelope["x_sent_at"] = times.text(received + skew)
        self.envelopes.append(envelope | {"event": event})
        if chance.random() < 0.06:
            self._repeat(envelope, event, received)

    def _tell_apart(self, app, event):
        """Gives an event an id of its own where it could be a repeat of another posted before."""
        if "event_uid" in event or "uuid" in event:
            return
        kind = event["type"].lower()
        same = (app, event.get("device_id"), ALIASES.get(kind, kind), event.get("action_id"),
                str(event.get("message_uid", event.get("inbox_message_uid"))).lower())
        if same in self.posted:
            event["event_uid"] = self.uid()
        self.posted.add(same)

    def _repeat(self, envelope, event, received):
        """The same event again: as it was, stamped anew, or at odds with the first."""
        again = dict(event)
        if self.is_free_of_arrival:
            self.envelopes.append(envelope | {"event": again})
            return
        received += self.chance.choice([1, SECOND, 10 * MINUTE, 30 * HOUR])
        if self.chance.random() < 0.3:
            for name in ("occurred_at", "timestamp", "time", "sent_at"):
                again.pop(name, None)
            again["occurred_at"] = self.written(received)
        if self.chance.random() < 0.15 and "campaign_id" in again:
            again["campaign_id"] = "conflict"
        self.envelopes.append(
            {"app": envelope["app"], "received_at": times.text(received), "event": again})

    def _load(self):
        """Puts the events into batches, nearly by time of receipt, and stamps these."""
        chance = self.chance
        self.envelopes.sort(
            key=lambda e: (times.parse(e["received_at"]) // (10 * SECOND), json.dumps(e)))
        start, batch, stored = 0, 0, 0
        while start < len(self.envelopes):
            end = start + chance.randint(1, max(2, len(self.envelopes) // 40))
            members = self.envelopes[start:end]
            batch += 1
            newest = max(times.parse(e["received_at"]) for e in members)
            stored = max(stored + 1, newest + chance.choice([1, SECOND]))
            for envelope in members:
                event = envelope.pop("event")
                envelope |= {"stored_at": times.text(stored), "batch": batch, "event": event}
            start = end


class Story:
    """One message, on one device or several."""

    def __init__(self, generator):
        self.generator, self.chance = generator, generator.chance
        self.devices = [self.chance.choice(generator.devices)]
        self.app = self.devices[0].app
        if self.chance.random() < SEVERAL[self.app]:
            others = [d for d in generator.devices if d.app == self.app]
            self.devices += self.chance.sample(others, min(len(others), 2))
        self.message = generator.uid() if self.chance.random() < 0.8 \
            else f"m-{self.chance.randrange(10 ** 9)}"
        self.inbox = generator.uid() if self.chance.random() < 0.25 else None
        self.campaign = self.chance.choice([None, *CAMPAIGNS, *CAMPAIGNS])
        # Who names the campaign: every event, `sent` alone, the click alone, or nobody.
        self.named_by = self.chance.choice(["all", "all", "sent", "clicked", "nobody"])
        self.is_silent = self.chance.random() < 0.06
        self.is_test = self.chance.random() < 0.03
        self.sent_at = generator.time()

    def happens(self, share):
        return self.chance.random() < share

    def tell(self):
        sent = SENT.get(self.app)
        if sent == "without device" or sent == "mixed" and self.happens(0.3):
            if self.happens(0.9):
                self.say("sent", self.sent_at, None)
        elif sent and self.happens(0.95):
            for device in self.devices:
                self.say("sent", self.sent_at, device)
        for device in self.devices:
            self.live(device)

    def live(self, device):
        """What happens on a device."""
        if self.happens(0.06):
            self.say("failed", self.sent_at + SECOND, device,
                     has_no_device=self.app != "shop" and self.happens(0.2))
        seen = self.sent_at + self.chance.choice([0, SECOND, 1500_000, 7 * MINUTE, 9 * HOUR])
        if self.happens(0.8):
            for kind in self.chance.choice(
                    [["received"], ["received", "displayed"], ["consumed"], ["displayed"],
                     ["received", "confirmed"]]):
                self.say(kind, seen, device, has_no_device=self.happens(0.03))
                seen += self.chance.choice([0, 1, 2 * SECOND])
        if self.campaign == UNTAPPED:
            if self.happens(0.06):
                self.launch(seen + self.chance.choice([SECOND, MINUTE, MINUTE, MINUTE + 1]), device)
            return
        clicked = seen + self.chance.choice(
            [0, 1, 2 * SECOND, 5 * MINUTE, 3 * HOUR, 30 * HOUR, -2 * SECOND])
        if self.happens(0.04 if device.values["app_version"] == SELDOM_TAPPED else 0.3):
            self.click("clicked", clicked, device)
        if self.happens(0.12):
            category, action = self.chance.choice(BUTTONS)
            more = {"category_id": category, "action_id": action,
                    "opens_app": self.chance.choice([None, None, True, False])}
            self.click("action", clicked + MINUTE, device, **more)
        if self.happens(0.08):
            self.say("dismissed", clicked + 3 * SECOND, device)
        if self.happens(0.03):
            self.say("custom:viewed", clicked, device)
        if self.inbox and self.happens(0.7):
            self.open_inbox(clicked + HOUR, device)
        if self.happens(0.4):
            self.launch(seen + self.chance.choice(
                [0, 1, 30 * SECOND, MINUTE, 2 * HOUR, 12 * HOUR, 12 * HOUR + 1]), device)
        if self.happens(0.05):
            self.convert(seen + HOUR, device)

    def click(self, kind, time, device, **more):
        for repeat in range(self.chance.choice([1, 1, 1, 2, 3])):
            self.say(kind, time + repeat * 20 * SECOND, device,
                     has_no_device=self.happens(0.02), **more)
        if self.happens(0.5):
            self.launch(time + self.chance.choice(
                [0, SECOND, -SECOND, 5 * SECOND, 5 * SECOND + 1, -5 * SECOND, HOUR]), device)
        if self.happens(0.3):
            self.convert(time + self.chance.choice(
                [0, -1, MINUTE, 3 * HOUR, 24 * HOUR, 24 * HOUR + 1]), device)

    def open_inbox(self, time, device):
        """Names the inbox message in one field or the other, or the push, or no device."""
        own = self.generator.cased(self.inbox)
        form = self.chance.random()
        if form < 0.4:
            ids = {"message_uid": own, "inbox_message_uid": None}
        elif form < 0.7:
            ids = {"message_uid": None, "inbox_message_uid": own}
        elif form < 0.9:
            ids = {"inbox_message_uid": own}
        else:
            ids = {"message_uid": "another", "inbox_message_uid": own}
        for kind in self.chance.choice(
                [["inbox_open"], ["inbox_received", "inbox_open"], ["inbox_read"]]):
            self.say(kind, time, device, has_no_device=self.happens(0.1), **ids)

    def launch(self, time, device):
        self.tracking("launch", time, device, self.happens(0.1))

    def convert(self, time, device):
        properties = {"value": self.chance.choice([1, 1.5, "9"]), "b": None, "a": [1, {}]}
        self.tracking("conversion", time, device, self.happens(0.2), properties=properties)

    def tracking(self, kind, time, device, names_message, **more):
        event = {"type": kind, "device_id": device.name} | more
        if names_message:
            event["message_uid"] = self.generator.cased(self.message)
            if self.happens(0.3):
                del event["device_id"]
        if device.has_event_uids:
            event["event_uid"] = self.generator.cased(self.generator.uid())
        self.generator.post(self.app, event, time, device)

    def say(self, kind, time, device, has_no_device=False, **more):
        """Posts an event of the message."""
        event = {"type": self.chance.choice(WORDS.get(kind, [kind])),
                 "message_uid": self.generator.cased(self.message)}
        if device and not has_no_device:
            event["device_id"] = device.name
        if device and device.has_event_uids and kind != "sent":
            event[self.chance.choice(["event_uid", "uuid"])] = \
                self.generator.cased(self.generator.uid())
        if self.campaign and (self.named_by == "all" or self.named_by == kind):
            self.name_campaign(event)
        if self.inbox and not kind.startswith("inbox") and self.happens(0.8):
            event["inbox_message_uid"] = self.generator.cased(self.inbox)
        if self.is_silent and self.happens(0.5):
            event["silent"] = True
        if self.is_test and self.happens(0.5):
            event["is_test"] = True
        if device and kind != "sent":
            self.describe(event, device)
        for name, value in more.items():
            event.pop(name, None)
            if value is not None:
                event[name] = value
        self.generator.post(self.app, event, time, device if kind != "sent" else None)

    def name_campaign(self, event):
        name = "elsewhere" if self.happens(0.03) else self.campaign
        kind, _, uid = name.partition(":")
        if uid and self.happens(0.5):
            event |= {"activity_type": kind, "activity_uid": int(uid) if uid.isdigit() else uid}
        else:
            event["campaign_id"] = int(name) if name == "42" else name

    def describe(self, event, device):
        """Dimensions; what is said is sometimes news."""
        for name, value in device.values.items():
            if self.happens(0.5):
                event[name] = self.chance.choice(VALUES[name]) if self.happens(0.05) else value
        if self.happens(0.1):
            event["category_id"] = self.chance.choice(["offer", "reply", "news"])
        if self.happens(0.1):
            event["properties"] = {"push_group": self.chance.choice([*GROUPS, "", 7]),
                                   "n": self.chance.choice([1, 1.0, 1e3])}
        if self.happens(0.1):
            event["topic"] = self.chance.choice(TOPICS)
