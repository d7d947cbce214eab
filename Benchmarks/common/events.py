"""Events that are a function of a seed and a position: repeatable, and any of them can be made again.

300 to 400 bytes each: one receipt a message, then 7 % clicks and 4.5 % inbox opens of one of the
20 000 messages before. Every id is a random UUID (version 4); each event has an `event_uid`. Those of a
`Wide` stream have a value of every dimension of reports.
"""
import gzip
import hashlib
import struct
import time

BODY_EVENTS = 1000
RECENT = 20_000
PLATFORMS = ["ios"] * 10 + ["android"] * 5 + ["web"]
CAMPAIGNS = 200
LOCALES = ["de_DE", "en_US", "en_GB", "fr_FR", "hi_IN", "it_IT", "pl_PL", "pt_BR"]
PROVIDERS = {"ios": "apns", "android": "fcm", "web": "webpush"}
TOPICS = ["football", "news", "weather"]


class Stream:
    """`line(n)` is event n. They happen evenly over `seconds` from `first_at`, less up to an hour.

    `count` only says how many share those seconds; positions beyond it go on at the same pace.
    """

    def __init__(self, seed, first_at, seconds, count):
        self.seed, self.first_at = seed, first_at
        self.pace = seconds / count
        self.stamps = {}

    def digest(self, position):
        return hashlib.blake2b(b"%d" % position, digest_size=64, key=b"%d" % self.seed).hexdigest()

    def stamp(self, second):
        text = self.stamps.get(second)
        if text is None:
            if len(self.stamps) > 20_000:
                self.stamps.clear()
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self.stamps[second] = text
        return text

    def line(self, position):
        own = of_message = self.digest(position)
        luck = int(own[96:], 16)
        roll = luck % 1000
        kind = "clicked" if roll < 70 else "inbox_open" if roll < 115 else "received"
        if roll < 115 and position > 0:
            # The message of one of the receipts before: it has the same device and campaign.
            other = position - 1 - (luck >> 10) % min(position, RECENT)
            of_message = self.digest(other)
            while other > 0 and int(of_message[96:], 16) % 1000 < 115:
                other -= 1
                of_message = self.digest(other)
        else:
            kind = "received"
        m, e = of_message, own
        campaign = int(m[96:100], 16) % CAMPAIGNS
        kind, members, properties = self.more(m, campaign, kind, luck)
        second = int(self.first_at + position * self.pace) - (luck >> 30) % 3600
        return (
            f'{{"type":"{kind}",'
            f'"message_uid":"{m[:8]}-{m[8:12]}-4{m[13:16]}-a{m[17:20]}-{m[20:32]}",'
            f'"device_id":"{m[32:40]}-{m[40:44]}-4{m[45:48]}-a{m[49:52]}-{m[52:64]}",'
            f'"event_uid":"{e[64:72]}-{e[72:76]}-4{e[77:80]}-a{e[81:84]}-{e[84:96]}",'
            f'"campaign_id":"campaign-{campaign}",'
            f'"occurred_at":"{self.stamp(second)}.{(luck >> 50) % 1000:03d}Z",'
            f'"platform":"{PLATFORMS[int(m[32], 16)]}","app_version":"4.{campaign % 9}.1",'
            f'{members}"properties":{{"screen":"home","session":{(luck >> 60) % 10**9},'
            f'"experiment":"b{campaign % 3}"{properties}}}}}\n')

    def more(self, m, campaign, kind, luck):
        """The type of an event, and more members of it and of its properties; `m` is of its message."""
        return kind, "", ""

    def lines(self, start, stop):
        return [self.line(position) for position in range(start, stop)]


class Wide(Stream):
    """Every dimension has values: some 300,000 mixtures of them, over which messages are spread.

    What a message says is the same in all its events. Messages of every fourth campaign have buttons, and
    half of the clicks on these are presses of one.
    """

    def more(self, m, campaign, kind, luck):
        of_device = int(m[33:40], 16)
        locale, country = LOCALES[of_device % 8].split("_")
        if of_device >> 4 & 3 == 0:
            country = "CH"
        members = (f'"os_version":"{14 + (of_device >> 8) % 4}.{(of_device >> 12) % 4}",'
                   f'"locale":"{locale}","country":"{country}",'
                   f'"provider":"{PROVIDERS[PLATFORMS[int(m[32], 16)]]}",')
        properties = f',"topic":"{TOPICS[campaign % 3]}"' if campaign % 5 == 0 else ""
        if of_device >> 16 & 15 == 0:
            properties += ',"push_group":"beta"'
        if campaign % 4 == 0:
            members += f'"category_id":"{"offer" if campaign % 8 else "reply"}",'
            if kind == "clicked" and luck >> 70 & 1:
                kind, press = "action", luck >> 71 & 1
                members += (f'"action_id":"{"buy" if press else "later"}",'
                            f'"opens_app":{"true" if press else "false"},')
        return kind, members, properties


def recent(seed, count, seconds=3600):
    """A stream of events that happened in the last hours before now."""
    return Stream(seed, time.time() - seconds, seconds, count)


def body(lines, plain=False):
    """A body as load.c reads it: length, events, bytes."""
    text = "".join(lines).encode()
    data = text if plain else gzip.compress(text, 1)
    return struct.pack("<II", len(data), len(lines)) + data


def write_bodies(path, lines, size=BODY_EVENTS, plain=False):
    """Writes `lines` (any iterable) in bodies of `size`; returns how many events."""
    part, written = [], 0
    with open(path, "wb") as file:
        for line in lines:
            part.append(line)
            if len(part) == size:
                file.write(body(part, plain))
                written, part = written + size, []
        if part:
            file.write(body(part, plain))
            written += len(part)
    return written
