"""Dead messages: kept with the reason, until a person retries or discards them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import msgspec
from redis.asyncio import Redis

from pillarbox.outbound.connection import passing
from pillarbox.outbound.scripts import Scripts


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """`number` names it for `retry` and `discard`; `at` is Unix seconds; `element` is as it came."""

    number: str
    lane: str
    reason: str
    detail: str = field(repr=False)
    attempts: int
    at: float
    element: bytes = field(repr=False)


class DeadMessages:
    """Of one bot, or of `-`: what no bot could be read from. Every method raises QueueUnavailable."""

    def __init__(self, redis: "Redis", queue: str, bot: str) -> None:
        self._redis = redis
        self._scripts = Scripts(redis, queue)
        self._bot = bot
        self._key = f"{queue}:dead:{bot}"

    async def newest(self, count: int, skip: int = 0) -> list[DeadMessage]:
        with passing():
            found = await self._redis.zrange(self._key, skip, skip + count - 1, desc=True)
            numbers = cast("list[bytes]", found)
            if not numbers:
                return []
            bodies = cast("list[bytes | None]", await self._redis.hmget(f"{self._key}:body", numbers))
        return [_read(n, body) for n, body in zip(numbers, bodies, strict=True) if body is not None]

    async def retry(self, numbers: Sequence[str]) -> tuple[int, list[str]]:
        """Each to its lane's end. How many moved, and the numbers that are unknown or were no message."""
        return await self._act("retry", numbers)

    async def discard(self, numbers: Sequence[str]) -> tuple[int, list[str]]:
        """Gone for good. How many, and the numbers that are unknown."""
        return await self._act("discard", numbers)

    async def _act(self, verb: Literal["retry", "discard"], numbers: Sequence[str]) -> tuple[int, list[str]]:
        moved, unknown = await self._scripts.call("people", verb, self._bot, *numbers)
        return int(moved), [number.decode() for number in unknown]


class _About(msgspec.Struct):
    lane: str
    reason: str
    detail: str
    attempts: int
    at: float


_about = msgspec.json.Decoder(_About)


def _read(number: bytes, body: bytes) -> DeadMessage:
    about, _, message = body.partition(b"\n")
    read = _about.decode(about)
    return DeadMessage(
        number=number.decode(),
        lane=read.lane,
        reason=read.reason,
        detail=read.detail,
        attempts=read.attempts,
        at=read.at / 1000,
        element=message.partition(b"\n")[2],
    )
