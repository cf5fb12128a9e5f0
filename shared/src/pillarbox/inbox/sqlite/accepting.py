"""Accept: in one transaction with whatever else waited for it."""

import sqlite3
from collections.abc import Iterator, Sequence

from pillarbox.inbox.repeats import key, storable
from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.sqlite.numbers import numbers
from pillarbox.inbox.states import Accepted, Incoming, Malformed


def accept(db: sqlite3.Connection, updates: Sequence[Incoming], now: int) -> list[Accepted]:
    rows = numbers(db, max(len(updates), 1))
    return [_store(db, update, rows, now) if storable(update) else Accepted.REFUSED for update in updates]


def _store(db: sqlite3.Connection, update: Incoming, rows: Iterator[int], now: int) -> Accepted:
    bot_id, update_id, digest = key(update)
    known = [row[0] for row in db.execute(statements.KNOWN, (bot_id, update_id))]
    if digest in known:
        return Accepted.REPEAT
    row = next(rows)
    db.execute(statements.SEEN, (bot_id, update_id, digest, now, row))
    db.execute(statements.LANE, (bot_id, update.lane, row))
    db.execute(
        statements.UPDATE,
        (
            row,
            bot_id,
            update.lane,
            update_id,
            update.kind,
            update.chat_id,
            update.user_id,
            now,
            update.sealed,
            update.body,
        ),
    )
    return Accepted.NEW_BODY if known else Accepted.NEW


def malformed(db: sqlite3.Connection, body: Malformed, most: int, now: int) -> None:
    db.execute(statements.MALFORMED, (body.bot_id, now, body.reason, body.body))
    trimmed = db.execute(statements.MALFORMED_TRIM, (body.bot_id, most)).rowcount
    if trimmed:
        db.execute(statements.MALFORMED_TRIMMED, (body.bot_id, trimmed))
