"""Which key is trusted for a person. Each function is one transaction's work: nobody comes between."""

import sqlite3

from pillarbox.ids import BotId
from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.sqlite.times import at
from pillarbox.inbox.states import Pin


def pinned(db: sqlite3.Connection, bot_id: BotId, user_id: int) -> Pin | None:
    found = db.execute(statements.PINNED, (bot_id, user_id)).fetchone()
    return Pin(user_id, found[0], at(found[1])) if found else None


def pin(db: sqlite3.Connection, bot_id: BotId, user_id: int, fingerprint: str, by: str, now: int) -> Pin:
    had = pinned(db, bot_id, user_id)
    return had or _put(db, "pin", bot_id, user_id, None, fingerprint, by, now)


def trust(db: sqlite3.Connection, bot_id: BotId, user_id: int, fingerprint: str, by: str, now: int) -> Pin:
    had = pinned(db, bot_id, user_id)
    return _put(db, "trust", bot_id, user_id, had.fingerprint if had else None, fingerprint, by, now)


def forget(db: sqlite3.Connection, bot_id: BotId, user_id: int, by: str, now: int) -> Pin | None:
    had = pinned(db, bot_id, user_id)
    if had is not None:
        db.execute(statements.FORGET_PIN, (bot_id, user_id))
        db.execute(statements.NOTED_PIN, (now, bot_id, user_id, by, "forget", had.fingerprint, None))
    return had


def _put(
    db: sqlite3.Connection,
    action: str,
    bot_id: BotId,
    user_id: int,
    old: str | None,
    fingerprint: str,
    by: str,
    now: int,
) -> Pin:
    db.execute(statements.PIN, (bot_id, user_id, fingerprint, now))
    db.execute(statements.NOTED_PIN, (now, bot_id, user_id, by, action, old, fingerprint))
    return Pin(user_id, fingerprint, at(now))
