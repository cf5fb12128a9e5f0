"""Forgets what is past its time, a batch a transaction."""

import sqlite3

from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.sqlite.driver import Driver
from pillarbox.inbox.sqlite.turning import trim_failed

BATCH = 1000

Place = tuple[int, int, int, bytes]


async def sweep(driver: Driver, old: int, max_failed: int) -> None:
    """`old`: what was seen before this moment is forgotten, unless its update is still here."""
    place: Place | None = (0, 0, 0, b"")
    while place is not None:
        place = await driver.call(lambda db, place=place: _forget_seen(db, old, place))  # type: ignore[misc]
    await driver.call(lambda db: _trim_failed(db, max_failed))


def _forget_seen(db: sqlite3.Connection, old: int, after: Place) -> Place | None:
    """Where the next batch begins; None when this was the last one."""
    batch = db.execute(statements.OLD_SEEN, (old, *after, BATCH)).fetchall()
    for _, bot_id, update_id, digest in batch:
        (kept,) = db.execute(statements.STILL_KEPT, (bot_id, update_id)).fetchone()
        if not kept:
            db.execute(statements.FORGET_SEEN, (bot_id, update_id, digest))
    return batch[-1] if len(batch) == BATCH else None


def _trim_failed(db: sqlite3.Connection, most: int) -> None:
    for bot_id, newest in db.execute(statements.FAILED_BOTS).fetchall():
        trim_failed(db, bot_id, [newest], most)
