"""The questions of `reader`, asked of a Storage itself: in `pillarbox run` its lists are short."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox import FailedUpdate, Filter, Storage
from pillarbox.inbox.kept import error_type
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_admin.cursor import Cursor
from pillarbox_admin.reader import PLACE, Page

BATCH = 500


@dataclass(frozen=True, slots=True)
class BotRow:
    bot_id: BotId
    waiting: int
    failed: int
    newest_failed: datetime | None
    running: int | None = None
    oldest_waiting: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailedRow:
    row: RowId
    update_id: UpdateId
    chat_id: int | None
    kind: str
    failed_at: datetime
    runs: int
    error: str
    type: str
    place: str
    user_id: int | None
    lane: str
    accepted_at: datetime
    body: bytes
    sealed: bool


@dataclass(frozen=True, slots=True)
class GroupRow:
    type: str
    place: str
    number: int


class InboxReader:
    """Of these bots; every method raises StorageUnavailable."""

    def __init__(self, storage: Storage, bots: Sequence[BotId]) -> None:
        self._storage = storage
        self._bots = sorted(bots)

    async def ping(self) -> None:
        await self._storage.ping()

    async def bots(self) -> list[BotRow]:
        return [await self._bot(bot_id) for bot_id in self._bots]

    async def _bot(self, bot_id: BotId) -> BotRow:
        counts = await self._storage.counts(bot_id)
        newest = await self._storage.failed_updates(bot_id, limit=1)
        return BotRow(bot_id, counts.pending, counts.failed, newest[0].failed_at if newest else None)

    async def failed(self, bot_id: BotId, asked: Filter, after: Cursor | None, limit: int) -> Page:
        """From the newest failure to the oldest."""
        found = await self._storage.failed_updates(
            bot_id, before=after.place if after else None, limit=limit + 1, matching=asked
        )
        last = found[limit - 1] if len(found) > limit else None
        return Page([_row(f) for f in found[:limit]], Cursor(last.failed_at, last.row) if last else None)

    async def failed_update(self, bot_id: BotId, update_id: UpdateId, row: RowId | None) -> FailedRow | None:
        """With its body; the newest of those with this id, unless `row` names one."""
        async for found in self._matching(bot_id, Filter(update_ids=(update_id,))):
            if row in (None, found.row):
                return found
        return None

    async def groups(self, bot_id: BotId, asked: Filter) -> list[GroupRow]:
        """Type, place and number of the failures, the most frequent first."""
        tally = Counter([(row.type, row.place) async for row in self._matching(bot_id, asked)])
        groups = [GroupRow(type_, place, number) for (type_, place), number in tally.items()]
        return sorted(groups, key=lambda group: (-group.number, group.type, group.place))

    async def malformed(self, after: Cursor | None, limit: int) -> Page:
        """From the newest to the oldest; none where the storage only counts them."""
        if not isinstance(self._storage, SQLiteStorage):
            return Page([], None)
        rows = await self._storage.malformed_bodies(before=after.row if after else None, limit=limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return Page(rows[:limit], Cursor(last.received_at, last.row) if last else None)

    async def _matching(self, bot_id: BotId, asked: Filter) -> AsyncIterator[FailedRow]:
        before: FailedUpdate | None = None
        while True:
            batch = await self._storage.failed_updates(bot_id, before=before, limit=BATCH, matching=asked)
            for failed in batch:
                yield _row(failed)
            if len(batch) < BATCH:
                return
            before = batch[-1]


def _row(failed: FailedUpdate) -> FailedRow:
    place = re.search(PLACE, failed.error)
    return FailedRow(
        row=failed.row,
        update_id=failed.update_id,
        chat_id=failed.chat_id,
        kind=failed.kind,
        failed_at=failed.failed_at,
        runs=failed.runs,
        error=failed.error,
        type=error_type(failed.error),
        place=place[1] if place else "",
        user_id=failed.user_id,
        lane=failed.lane,
        accepted_at=failed.accepted_at,
        body=failed.body,
        sealed=failed.sealed,
    )
