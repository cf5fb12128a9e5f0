"""What admin asks the inbox's database. Every query of one bot's updates names the bot."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Subquery, func, select, true, tuple_, union

from pillarbox.db.schema import bots, failed, lanes, malformed, updates
from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox.filtering import Filter
from pillarbox.inbox.kept import TYPE
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.database import Database

LIMIT = 200

PLACE = r" at ([^ ]+:[0-9]+)$"


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[Any]
    next: Cursor | None


class Reader:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def ping(self) -> None:
        await self._database.ask(select(failed.c.row_id).limit(1))

    async def bots(self) -> Sequence[Row[Any]]:
        return await self._database.ask(_bots())

    async def failed(self, bot_id: BotId, asked: Filter, after: Cursor | None, limit: int) -> Page:
        """From the newest failure to the oldest."""
        query = select(*LISTED).where(*_matching(bot_id, asked))
        return await self._page(query, failed.c.failed_at, failed.c.row_id, after, limit)

    async def failed_update(self, bot_id: BotId, update_id: UpdateId, row: RowId | None) -> Row[Any] | None:
        """With its body; the newest of those with this id, unless `row` names one."""
        query = select(*LISTED, *IN_FULL).where(failed.c.bot_id == bot_id, failed.c.update_id == update_id)
        if row is not None:
            query = query.where(failed.c.row_id == row)
        rows = await self._database.ask(
            query.order_by(failed.c.failed_at.desc(), failed.c.row_id.desc()).limit(1)
        )
        return rows[0] if rows else None

    async def groups(self, bot_id: BotId, asked: Filter) -> Sequence[Row[Any]]:
        """Type, place and number of the failures, the most frequent first."""
        query = (
            select(_type().label("type"), _place().label("place"), func.count().label("number"))
            .where(*_matching(bot_id, asked))
            .group_by("type", "place")
            .order_by(func.count().desc(), "type", "place")
        )
        return await self._database.ask(query)

    async def malformed(self, after: Cursor | None, limit: int) -> Page:
        size = func.octet_length(malformed.c.body).label("size")
        columns = malformed.c.id.label("row"), malformed.c.bot_id, malformed.c.received_at, malformed.c.reason
        return await self._page(select(*columns, size), malformed.c.received_at, malformed.c.id, after, limit)

    async def _page(
        self,
        query: Select[Any],
        at: ColumnElement[datetime],
        row: ColumnElement[int],
        after: Cursor | None,
        limit: int,
    ) -> Page:
        if after is not None:
            query = query.where(tuple_(at, row) < (after.at, after.row))
        rows = await self._database.ask(query.order_by(at.desc(), row.desc()).limit(limit + 1))
        last = rows[limit - 1] if len(rows) > limit else None
        return Page(rows[:limit], Cursor(last._mapping[at.name], last.row) if last is not None else None)


def _type() -> ColumnElement[str]:
    """`KeyError` of `KeyError: 'city' at bot.py:31`; a text of another form is its own type."""
    return func.coalesce(func.substring(failed.c.error, TYPE), failed.c.error)


def _place() -> ColumnElement[str]:
    return func.coalesce(func.substring(failed.c.error, PLACE), "")


LISTED = (
    failed.c.row_id.label("row"),
    failed.c.update_id,
    failed.c.chat_id,
    failed.c.kind,
    failed.c.failed_at,
    failed.c.runs,
    failed.c.error,
    _type().label("type"),
    _place().label("place"),
)
IN_FULL = (failed.c.user_id, failed.c.lane, failed.c.accepted_at, failed.c.body, failed.c.sealed)


def _matching(bot_id: BotId, asked: Filter) -> list[ColumnElement[bool]]:
    conditions = [
        failed.c.bot_id == bot_id,
        None if asked.since is None else failed.c.failed_at >= asked.since,
        None if asked.until is None else failed.c.failed_at < asked.until,
        None if asked.kind is None else failed.c.kind == asked.kind,
        None if asked.chat_id is None else failed.c.chat_id == asked.chat_id,
        None if asked.error is None else _type() == asked.error,
        None if asked.update_ids is None else failed.c.update_id.in_(asked.update_ids),
    ]
    return [condition for condition in conditions if condition is not None]


def _bots() -> Select[Any]:
    waiting, gone_wrong = _waiting(), _failed()
    known = union(select(bots.c.bot_id), select(waiting.c.bot_id), select(gone_wrong.c.bot_id)).subquery()
    return (
        select(
            known.c.bot_id,
            func.coalesce(waiting.c.waiting, 0).label("waiting"),
            func.coalesce(waiting.c.running, 0).label("running"),
            func.coalesce(gone_wrong.c.failed, 0).label("failed"),
            waiting.c.oldest.label("oldest_waiting"),
            gone_wrong.c.newest.label("newest_failed"),
        )
        .select_from(known)
        .outerjoin(waiting, waiting.c.bot_id == known.c.bot_id)
        .outerjoin(gone_wrong, gone_wrong.c.bot_id == known.c.bot_id)
        .order_by(known.c.bot_id)
    )


def _waiting() -> Subquery:
    """Costs one look at the index for each lane, however many updates wait in it."""
    first = (
        select(updates.c.accepted_at)
        .where(updates.c.bot_id == lanes.c.bot_id, updates.c.lane == lanes.c.lane)
        .order_by(updates.c.row_id)
        .limit(1)
        .lateral()
    )
    return (
        select(
            lanes.c.bot_id,
            func.sum(lanes.c.pending).label("waiting"),
            func.count().filter(lanes.c.lease_until > func.now()).label("running"),
            func.min(first.c.accepted_at).label("oldest"),
        )
        .select_from(lanes)
        .outerjoin(first, true())
        .group_by(lanes.c.bot_id)
        .subquery()
    )


def _failed() -> Subquery:
    return (
        select(failed.c.bot_id, func.count().label("failed"), func.max(failed.c.failed_at).label("newest"))
        .group_by(failed.c.bot_id)
        .subquery()
    )
