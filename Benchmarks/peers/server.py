"""The server that a team would write in Python, to compare with: ASGI, orjson, asyncpg.

POST /v1/events takes NDJSON, gzipped or not. A body is one transaction: COPY into a staging table,
then a sorted INSERT that leaves out what is there; it is committed before the answer. A line that
cannot be read is rejected alone. There is no spool, no report and no limit of any kind.

PEER_DATABASE names the database (a DSN), PEER_KEY the key that senders must have.
"""
import gzip
import hashlib
import os
import uuid
from datetime import datetime, timezone

import asyncpg
import orjson

SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
    key uuid PRIMARY KEY, app text NOT NULL, type text NOT NULL, message_uid text, device_id text,
    event_uid text, campaign_id text, platform text, app_version text,
    occurred_at timestamptz NOT NULL, received_at timestamptz NOT NULL, properties jsonb)"""
STAGING = "CREATE TEMP TABLE staging (LIKE event) ON COMMIT DELETE ROWS"
STORE = "INSERT INTO event SELECT * FROM staging ORDER BY key ON CONFLICT DO NOTHING"
KEY = b"Bearer " + os.environ["PEER_KEY"].encode()
pool = None


async def start():
    global pool
    dsn = os.environ["PEER_DATABASE"]
    one = await asyncpg.connect(dsn)
    async with one.transaction():
        await one.execute("SELECT pg_advisory_xact_lock(1)")  # Workers start at the same time.
        await one.execute(SCHEMA)
    await one.close()
    pool = await asyncpg.create_pool(dsn, min_size=8, max_size=8, init=lambda c: c.execute(STAGING),
                                     reset=no_reset)


async def no_reset(connection):
    """Resetting a session would drop its staging table, and costs a round trip."""


def identity(event):
    """One event, one key: its id, or for a status without one its message and device."""
    parts = [event["type"], event.get("event_uid")] if event.get("event_uid") else \
        [event["type"], event["message_uid"], event.get("device_id", "")]
    return uuid.UUID(bytes=hashlib.sha256("\0".join(parts).encode()).digest()[:16])


def row(line, received_at):
    event = orjson.loads(line)
    occurred = event["occurred_at"]
    return (
        identity(event), "bench", event["type"], event.get("message_uid"), event.get("device_id"),
        event.get("event_uid"), event.get("campaign_id"), event.get("platform"),
        event.get("app_version"), datetime.fromisoformat(occurred), received_at,
        orjson.dumps(event["properties"]).decode() if "properties" in event else None)


async def store(body):
    rows, rejected, now = [], 0, datetime.now(timezone.utc)
    for line in body.splitlines():
        try:
            rows.append(row(line, now))
        except (KeyError, TypeError, ValueError, AttributeError):
            rejected += 1
    async with pool.acquire() as connection, connection.transaction():
        await connection.copy_records_to_table("staging", records=rows)
        await connection.execute(STORE)
    return {"received": len(rows) + rejected, "accepted": len(rows), "rejected": rejected}


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await start()
        return await send({"type": "lifespan.startup.complete"})
    headers = dict(scope["headers"])
    status, answer = 200, {}
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["path"] != "/v1/events" or headers.get(b"authorization") != KEY:
        status, answer = 401, {"error": "unknown path or key"}
    else:
        try:
            text = gzip.decompress(body) if headers.get(b"content-encoding") == b"gzip" else body
        except (OSError, EOFError):
            status, answer = 400, {"error": "not gzip"}
        else:
            answer = await store(bytes(text))
    text = orjson.dumps(answer)
    await send({"type": "http.response.start", "status": status, "headers": [
        (b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})
