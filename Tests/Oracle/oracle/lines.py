"""Lines to events: docs/events.md, "Fields", "Types" and "Identity".

A file of the oracle is NDJSON. Each line is an envelope around one line as an SDK sends it:

    {"app":"shop","received_at":"2026-03-29T01:30:00.25Z","stored_at":"…","batch":7,"event":{…}}

| member | |
|---|---|
| `app` | of the key that it was posted with |
| `received_at` | when the server received it |
| `stored_at` | when it was loaded, for `--as-of`; without it, it was always there |
| `batch` | what was loaded together has one number; not read |
| `x_sent_at` | header `X-Sent-At` of the request; may be absent |
| `event` | what was posted |

The order of lines is the order of loading, which decides what of two equal identities stays.
"""
import hashlib
import json
import re

from oracle import times

STATUS = frozenset([
    "sent", "failed", "received", "displayed", "consumed", "confirmed", "clicked", "action",
    "dismissed", "inbox_received", "inbox_read", "inbox_open", "inbox_deleted"])
INBOX = frozenset(["inbox_received", "inbox_read", "inbox_open", "inbox_deleted"])
TRACKING = frozenset(["launch", "inbox_fetch", "conversion"])
ALIASES = {
    "pushreceived": "received", "push_receive": "received", "delivered": "received",
    "clickthru": "clicked", "click": "clicked", "open": "clicked", "opened": "clicked",
    "button": "action", "dismiss": "dismissed", "inboxopen": "inbox_open"}
SPELLINGS = {
    "type": ("type", "event", "status", "kind"),
    "event_uid": ("event_uid", "uuid", "event_id", "insert_id"),
    "occurred_at": ("occurred_at", "timestamp", "time"),
    "properties": ("properties", "attributes", "props")}
IDENTIFIERS = (
    "message_uid", "device_id", "action_id", "category_id", "person_id", "inbox_message_uid")
TEXTS = (
    "collapse_key", "platform", "app_version", "os_version", "sdk_version", "locale", "country",
    "provider")
BOOLEANS = ("opens_app", "is_test", "silent")
KNOWN = frozenset(
    ["campaign_id", "activity_type", "activity_uid", "sent_at", *IDENTIFIERS, *TEXTS, *BOOLEANS,
     *(name for names in SPELLINGS.values() for name in names)])
BYTES_MAX = 128
UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
WORD = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
INTEGER = re.compile(r"-?\d+")


class Rejected(Exception):
    """The daemon stores nothing of the line."""


class Number(str):
    """A JSON number as it was written."""


class Event:
    """One accepted event; absent fields are None."""

    __slots__ = (
        "app", "type", "word", "key", "received", "stored", "occurred", "time", "time_rule",
        "properties", "event_uid", "campaign_id", *IDENTIFIERS, *TEXTS, *BOOLEANS)

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, None)

    @property
    def order(self):
        """Earlier first; equal times by identity."""
        return self.time, self.key

    @property
    def is_late(self):
        return self.received - self.time > times.DAY


def identifier(value, folds=False):
    """Text of at most 128 bytes or an integer, as its text; an empty one is absent."""
    if value is None:
        return None
    if isinstance(value, Number):
        if not INTEGER.fullmatch(value):
            raise Rejected("invalid_type")
    elif not isinstance(value, str):
        raise Rejected("invalid_type")
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise Rejected("invalid_character")
    if len(value.encode()) > BYTES_MAX:
        raise Rejected("field_too_long")
    if folds and UUID.fullmatch(value):
        value = value.lower()
    return str(value) or None


def lowered(text):
    """A to Z in lower case."""
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in text)


class Members:
    """The members of a line that are left; what no field takes belongs to the properties."""

    def __init__(self, line):
        # Null is absent, but an unknown field with null is kept as it is.
        self.rest = {n: v for n, v in line.items() if v is not None or n not in KNOWN}

    def take(self, field):
        """The value of the first spelling that is there."""
        for name in SPELLINGS.get(field, (field,)):
            if name in self.rest:
                return self.rest.pop(name)
        return None

    def take_text(self, field):
        """A text or number of at most 128 bytes; anything else stays."""
        value = self.rest.get(field)
        if isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) <= BYTES_MAX:
            return _well_formed(str(self.rest.pop(field))) or None
        return None

    def take_time(self):
        for name in SPELLINGS["occurred_at"]:
            if name in self.rest:
                # Of two spellings the first counts, even where it says nothing.
                return str(self.rest.pop(name)) if isinstance(self.rest[name], str) else None
        return None

    def properties(self):
        """The object sent, with what has no other place; None without either."""
        found = None
        for name in SPELLINGS["properties"]:
            if name in self.rest:
                if isinstance(self.rest[name], dict):
                    found = self.rest.pop(name)
                break
        if found is None and not self.rest:
            return None
        inner = found or {}
        return {**inner, **{f"top.{n}" if n in inner else n: v for n, v in self.rest.items()}}


def parse(line, app, received, x_sent_at=None):
    """The event of one line, a dictionary whose numbers are `Number`; raises Rejected."""
    if not isinstance(line, dict):
        raise Rejected("not_an_object")
    members = Members(line)
    event = Event()
    event.app, event.received = app, received
    word = members.take("type")
    if word is None or word == "":
        raise Rejected("missing_type")
    if not isinstance(word, str) or isinstance(word, Number):
        raise Rejected("invalid_type")
    if not WORD.fullmatch(word):
        raise Rejected("invalid_character")
    event.word = word
    known = ALIASES.get(word.lower(), word.lower())
    event.type = known if known in STATUS or known in TRACKING else "custom"
    for name in IDENTIFIERS:
        setattr(event, name, identifier(
            members.take(name), folds=name in ("message_uid", "inbox_message_uid")))
    event.event_uid = identifier(members.take("event_uid"), folds=True)
    if event.type in INBOX and event.message_uid is None:
        event.message_uid = event.inbox_message_uid
    event.campaign_id = _campaign(members)
    for name in BOOLEANS:
        value = members.take(name)
        if value is not None and not isinstance(value, bool):
            raise Rejected("invalid_type")
        setattr(event, name, value)
    for name in TEXTS:
        setattr(event, name, members.take_text(name))
    if event.platform:
        event.platform = lowered(event.platform)
    as_sent = members.take_time() or None
    sent_text = members.take("sent_at")
    sent = times.parse(sent_text) if isinstance(sent_text, str) else None
    event.occurred = times.parse(as_sent) if as_sent else None
    event.time, event.time_rule = times.of_event(
        event.occurred, x_sent_at if sent is None else sent, received)
    event.properties = members.properties()
    event.key = _identity(event, as_sent)
    return event


def _campaign(members):
    named = identifier(members.take("campaign_id"))
    if named is not None:
        return named
    parts = [members.rest.get(name) for name in ("activity_type", "activity_uid")]
    if all(isinstance(part, str) and part for part in parts):
        both = [identifier(part) for part in parts]
        for name in ("activity_type", "activity_uid"):
            members.take(name)
        return identifier(":".join(both))
    return None


def _identity(event, as_sent):
    """The first 128 bits of SHA-256 over what makes two events the same."""
    is_status = event.type in STATUS
    if is_status and event.message_uid is None:
        raise Rejected("missing_message_uid")
    if event.event_uid is not None:
        rule, own = 1, [event.event_uid]
    elif is_status:
        rule, own = 2, [event.action_id]
    elif as_sent is None or event.device_id is None and event.message_uid is None:
        raise Rejected("no_identity")
    else:
        rule = 3
        own = [as_sent, None if event.properties is None else canonical(event.properties)]
    kind = event.word if event.type == "custom" else event.type
    text = bytes([rule])
    for field in [event.app, event.device_id, kind, event.message_uid, *own]:
        if field is None:
            text += b"\xff\xff\xff\xff"
        else:
            encoded = field.encode("utf-8", "replace")
            text += len(encoded).to_bytes(4, "big") + encoded
    return hashlib.sha256(text).digest()[:16]


def canonical(value):
    """JSON in which equal values are equal texts."""
    if isinstance(value, dict):
        # Keys are compared as they are written, in quotes.
        members = sorted(
            ((canonical(_well_formed(n)), v) for n, v in value.items()),
            key=lambda m: m[0].encode())
        return "{" + ",".join(f"{n}:{canonical(v)}" for n, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Number):
        return _canonical_number(value)
    if isinstance(value, str):
        return json.dumps(_well_formed(value), ensure_ascii=False)
    return json.dumps(value)


def _canonical_number(text):
    digits, _, power = text.lower().lstrip("-").partition("e")
    whole, _, fraction = digits.partition(".")
    exponent = int(power or 0) - len(fraction)
    stripped = (whole + fraction).lstrip("0")
    significant = stripped.rstrip("0")
    if not significant:
        return "0"
    exponent += len(stripped) - len(significant)
    sign = "-" if text.startswith("-") else ""
    return f"{sign}{significant}" + (f"e{exponent}" if exponent else "")


def _well_formed(text):
    """NUL and halves of surrogate pairs become U+FFFD."""
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def _load(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


def event_of(envelope):
    """The event in an envelope, as text or as a dictionary."""
    if isinstance(envelope, dict):
        envelope = json.dumps(envelope)
    envelope = _load(envelope)
    header = envelope.get("x_sent_at")
    event = parse(
        envelope["event"], envelope["app"], times.parse(envelope["received_at"]),
        times.parse(header) if header is not None else None)
    if envelope.get("stored_at") is not None:
        event.stored = times.parse(envelope["stored_at"])
    return event


def events_of(envelopes):
    """The accepted events, once each: of equal identities the first."""
    kept = {}
    for envelope in envelopes:
        try:
            event = event_of(envelope)
        except Rejected:
            continue
        kept.setdefault(event.key, event)
    return list(kept.values())
