"""What admin asks Redis: the depths of the queue, and the dead messages."""

from dataclasses import dataclass

from redis.asyncio import Redis

from pillarbox.ids import RowId
from pillarbox.outbound.connection import connect, passing
from pillarbox.outbound.dead import Dead, dead
from pillarbox.outbound.depths import Depths, depths
from pillarbox.settings import RedisSettings
from pillarbox_admin.cursor import Cursor


@dataclass(frozen=True, slots=True)
class DeadPage:
    rows: list[Dead]
    next: Cursor | None


class Outbound:
    """Every method raises QueueUnavailable."""

    def __init__(self, redis: "Redis", queue: str) -> None:
        self._redis = redis
        self._queue = queue

    @classmethod
    def of(cls, settings: RedisSettings) -> "Outbound":
        """Connects when it is first asked, so that the process stands while Redis is away."""
        return cls(connect(settings), settings.redis_messages_key)

    async def close(self) -> None:
        await self._redis.aclose()

    async def ping(self) -> None:
        with passing():
            await self._redis.ping()

    async def depths(self) -> Depths:
        return await depths(self._redis, self._queue)

    async def dead(self, after: Cursor | None, limit: int) -> DeadPage:
        """From the newest to the oldest, of all bots."""
        before = (after.at, int(after.row)) if after else None
        rows = await dead(self._redis, self._queue, limit + 1, before)
        last = rows[limit - 1] if len(rows) > limit else None
        return DeadPage(rows[:limit], Cursor(last.died_at, RowId(last.number)) if last else None)
