"""Dead messages, for people: from the newest to the oldest; retried or discarded."""

import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

from redis.asyncio import Redis

from pillarbox.ids import BotId
from pillarbox.outbound.connection import passing
from pillarbox.outbound.scripts import Scripts


@dataclass(frozen=True, slots=True)
class Dead:
    """`bot_id` is None, and `lane` empty, where the element did not say; `element` is what came."""

    number: int
    bot_id: BotId | None
    lane: str
    reason: str
    detail: str
    attempts: int
    died_at: datetime
    id: str
    element: bytes = field(repr=False)

    @property
    def size(self) -> int:
        return len(self.element)

    @property
    def place(self) -> tuple[datetime, int]:
        return self.died_at, self.number


async def dead(
    redis: "Redis", queue: str, limit: int, before: tuple[datetime, int] | None = None
) -> list[Dead]:
    """Those of every bot that died before that `place`. Raises QueueUnavailable."""
    with passing():
        bots: Iterable[Any] = await redis.smembers(f"{queue}:bots")
        lists = [await _dead_of(redis, queue, bot.decode(), limit, before) for bot in bots]
    return list(islice(heapq.merge(*lists, key=lambda message: message.place, reverse=True), limit))


async def _dead_of(
    redis: "Redis", queue: str, bot: str, limit: int, before: tuple[datetime, int] | None
) -> list[Dead]:
    key = f"{queue}:dead:{bot}"
    latest, ties = "+inf", 0
    if before is not None:
        latest = str(_ms(before[0]))
        ties = await redis.zcount(key, latest, latest)
    numbers: list[Any] = await redis.zrevrangebyscore(key, latest, "-inf", start=0, num=limit + ties)
    bodies: list[Any] = await redis.hmget(f"{key}:body", numbers) if numbers else []
    messages = [_message(bot, int(n), body) for n, body in zip(numbers, bodies, strict=True) if body]
    return [message for message in messages if before is None or message.place < before][:limit]


def _message(bot: str, number: int, body: bytes) -> Dead:
    about, line, element = body.split(b"\n", 2)
    said = json.loads(about.decode("utf-8", "replace"))
    return Dead(
        number=number,
        bot_id=BotId(int(bot)) if bot.isdigit() else None,
        lane=said["lane"],
        reason=said["reason"],
        detail=said["detail"],
        attempts=said["attempts"],
        died_at=datetime.fromtimestamp(said["at"] / 1000, UTC),
        id=line.split(b"\t", 3)[3].decode(),
        element=element,
    )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


async def retry(
    redis: "Redis", queue: str, bot: BotId | None, numbers: Sequence[int]
) -> tuple[int, list[int]]:
    """Each to its lane's end, as if it had just come. How many, and the numbers that are unknown or no
    messages. Raises QueueUnavailable.
    """
    return await _act("retry", redis, queue, bot, numbers)


async def discard(
    redis: "Redis", queue: str, bot: BotId | None, numbers: Sequence[int]
) -> tuple[int, list[int]]:
    """Gone for good. How many, and the numbers that are unknown. Raises QueueUnavailable."""
    return await _act("discard", redis, queue, bot, numbers)


async def _act(
    verb: Literal["retry", "discard"], redis: "Redis", queue: str, bot: BotId | None, numbers: Sequence[int]
) -> tuple[int, list[int]]:
    names = [f"{number:012d}" for number in numbers]
    owner = str(bot) if bot is not None else "-"
    moved, unknown = await Scripts(redis, queue).call("people", verb, owner, *names)
    return int(moved), [int(number) for number in unknown]
