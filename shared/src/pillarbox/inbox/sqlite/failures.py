"""What people do with failed updates, in batches: again, or never more."""

import sqlite3
from collections.abc import Sequence
from typing import Literal

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox.filtering import Filter, Progress, Which, is_int64, unheard
from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.sqlite.driver import Calls
from pillarbox.inbox.sqlite.filters import columns
from pillarbox.inbox.sqlite.numbers import numbers
from pillarbox.inbox.states import Moved

BATCH = 500

Action = Literal["retry", "discard"]
Picked = tuple[int, int, str]


async def move(
    driver: Calls,
    action: Action,
    bot_id: BotId,
    which: Which,
    by: str,
    now: int,
    progress: Progress = unheard,
) -> Moved:
    """What fails while it runs is not touched, so a batch never begins again with what it has."""
    newest = await driver.call(lambda db: _newest(db, bot_id))
    if which is None or isinstance(which, Filter):
        return Moved(await _move_all(driver, action, bot_id, which, newest, by, now, progress))
    wanted = [update_id for update_id in dict.fromkeys(which) if is_int64(update_id)]
    moved, unknown, running = 0, [i for i in dict.fromkeys(which) if not is_int64(i)], []
    for at in range(0, len(wanted), BATCH):
        some = wanted[at : at + BATCH]
        part = await driver.call(lambda db, some=some: _move_some(db, action, bot_id, some, newest, by, now))  # type: ignore[misc]
        moved += part.moved
        progress(part.moved)
        unknown += part.unknown
        running += part.running
    return Moved(moved, unknown, running)


async def _move_all(
    driver: Calls,
    action: Action,
    bot_id: BotId,
    matching: Filter | None,
    newest: int,
    by: str,
    now: int,
    progress: Progress,
) -> int:
    chosen = matching is not None and matching.update_ids is not None
    statement = statements.FAILED_BATCH_CHOSEN if chosen else statements.FAILED_BATCH
    parameters = (bot_id, newest, *columns(matching), BATCH)

    def batch(db: sqlite3.Connection) -> int:
        picked = db.execute(statement, parameters).fetchall()
        _act(db, action, bot_id, picked, by, now)
        return len(picked)

    moved, some = 0, BATCH
    while some == BATCH:
        some = await driver.call(batch)
        moved += some
        progress(some)
    return moved


def _newest(db: sqlite3.Connection, bot_id: BotId) -> int:
    return db.execute(statements.NEWEST_FAILED, (bot_id,)).fetchone()[0] or 0


def _move_some(
    db: sqlite3.Connection,
    action: Action,
    bot_id: BotId,
    update_ids: Sequence[UpdateId],
    newest: int,
    by: str,
    now: int,
) -> Moved:
    picked: list[Picked] = []
    unknown: list[UpdateId] = []
    running: list[UpdateId] = []
    for update_id in update_ids:
        found = db.execute(statements.FAILED_OF, (bot_id, update_id, newest)).fetchall()
        picked += found
        if not found:
            waits = db.execute(statements.WAITING, (bot_id, update_id)).fetchone()
            (running if waits else unknown).append(update_id)
    _act(db, action, bot_id, sorted(picked), by, now)
    return Moved(len(picked), unknown, running)


def _act(
    db: sqlite3.Connection, action: Action, bot_id: BotId, picked: Sequence[Picked], by: str, now: int
) -> None:
    fresh = numbers(db, max(len(picked), 1))
    for row, update_id, lane in picked:
        if action == "retry":
            number = next(fresh)
            db.execute(statements.REQUEUED, (number, now, row))
            db.execute(statements.MOVED, (number, bot_id, update_id, row))
            db.execute(statements.LANE, (bot_id, lane, number))
        db.execute(statements.FORGET_FAILED, (row,))
        db.execute(statements.NOTED, (now, bot_id, update_id, row, by, action))
