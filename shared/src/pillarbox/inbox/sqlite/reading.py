"""What people see of the inbox."""

import heapq
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox.filtering import Filter
from pillarbox.inbox.handing import handful
from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.sqlite.filters import columns
from pillarbox.inbox.sqlite.times import at, of
from pillarbox.inbox.states import Audited, Counts, FailedUpdate, OutboxRow, Place


@dataclass(frozen=True, slots=True)
class MalformedBody:
    row: RowId
    bot_id: BotId
    received_at: datetime
    reason: str
    size: int


def malformed_bodies(db: sqlite3.Connection, before: RowId | None, limit: int) -> list[MalformedBody]:
    newest = (1 << 63) - 1 if before is None else before
    return [
        MalformedBody(RowId(row), BotId(bot), at(received), reason, size)
        for row, bot, received, reason, size in db.execute(statements.MALFORMED_LIST, (newest, limit))
    ]


def outbox(db: sqlite3.Connection, bots: Sequence[BotId], limit: int) -> list[OutboxRow]:
    """The oldest of all these bots; bodies that are not handed out are not read."""
    found = heapq.merge(*(db.execute(statements.OUTBOX, (bot, limit)) for bot in bots), key=itemgetter(2, 3))
    return handful(
        (OutboxRow(BotId(bot), lane, RowId(row), n, body) for bot, lane, row, n, body in found), limit
    )


def failed_updates(
    db: sqlite3.Connection,
    bot_id: BotId,
    before: FailedUpdate | Place | None,
    limit: int,
    matching: Filter | None = None,
) -> list[FailedUpdate]:
    at_most, last = (of(before.failed_at), before.row) if before else ((1 << 63) - 1, 0)
    chosen = matching is not None and matching.update_ids is not None
    statement = statements.FAILED_LIST_CHOSEN if chosen else statements.FAILED_LIST
    found = db.execute(statement, (bot_id, at_most, *columns(matching), last, limit))
    return [
        FailedUpdate(
            RowId(row),
            BotId(bot),
            UpdateId(update),
            kind,
            lane,
            chat,
            user,
            at(accepted),
            at(failed),
            runs,
            error,
            body,
            bool(sealed),
        )
        for row, bot, update, kind, lane, chat, user, accepted, failed, runs, error, body, sealed in found
    ]


def audit(db: sqlite3.Connection, bot_id: BotId, limit: int) -> list[Audited]:
    found = db.execute(statements.AUDIT, (bot_id, limit))
    return [Audited(at(when), bot_id, *rest) for when, *rest in found]


def knows(db: sqlite3.Connection, bot_id: BotId) -> bool:
    return bool(db.execute(statements.KNOWS, (bot_id,)).fetchone()[0])


def counts(db: sqlite3.Connection, bot_id: BotId) -> Counts:
    return Counts(*db.execute(statements.COUNTS, (bot_id,)).fetchone())
