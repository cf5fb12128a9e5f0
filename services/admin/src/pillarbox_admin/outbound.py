"""What admin asks Redis: the depths of the queue, dead messages, and what people do with messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from pillarbox.ids import BotId, RowId
from pillarbox.outbound.acts import DeadActs
from pillarbox.outbound.audit import Audited, audited
from pillarbox.outbound.cancelling import Cancelled, cancel
from pillarbox.outbound.connection import connect, passing
from pillarbox.outbound.dead import Dead, DeadFilter
from pillarbox.outbound.depths import Depths, depths
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Scripts
from pillarbox.outbound.settings import QueueSettings
from pillarbox_admin.cursor import Cursor


@dataclass(frozen=True, slots=True)
class DeadPage:
    rows: list[Dead]
    next: Cursor | None


class Outbound:
    """Every method raises QueueUnavailable."""

    def __init__(self, redis: "Redis", queue: str, reader: Reader) -> None:
        self._redis, self._queue = redis, queue
        self._scripts = Scripts(redis, queue)
        self.acts = DeadActs(self._scripts, reader)

    @classmethod
    def of(cls, settings: QueueSettings) -> "Outbound":
        """Connects when it is first asked, so that the process stands while Redis is away."""
        return cls(connect(settings), settings.redis_messages_key, settings.reader)

    async def close(self) -> None:
        await self._redis.aclose()

    async def ping(self) -> None:
        with passing():
            await self._redis.ping()

    async def depths(self) -> Depths:
        return await depths(self._redis, self._queue)

    async def dead(self, asked: DeadFilter, after: Cursor | None, limit: int) -> DeadPage:
        """From the newest to the oldest, of all bots unless the filter names one."""
        before = (after.at, int(after.row)) if after else None
        rows = await self.acts.messages.page(asked, before, limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return DeadPage(rows[:limit], Cursor(last.died_at, RowId(last.number)) if last else None)

    async def count_dead(self, asked: DeadFilter) -> int:
        return await self.acts.messages.count(asked)

    async def dead_message(self, number: int, bot_id: BotId | None = None) -> Dead | None:
        """With what it says."""
        return await self.acts.messages.find(number, bot_id)

    async def edit(self, number: int, changes: Mapping[str, Any], by: str, bot_id: BotId | None) -> bool:
        return await self.acts.edit(number, changes, by, bot_id=bot_id)

    async def cancel(self, bot_id: BotId, id: str, by: str) -> Cancelled:
        return await cancel(self._scripts, bot_id, id, by)

    async def audited(self, most: int) -> list[Audited]:
        return await audited(self._scripts, most)
