"""What senders had in their hands when they were killed, and what is dead: read from Redis itself."""

import asyncio
import json
from typing import cast

import redis.asyncio as redis
from redis.exceptions import RedisError

from pillarbox.outbound.keys import Keys
from tests.faults.verdict import Key, key_of

PATIENCE = 60


class Hands:
    def __init__(self, client: "redis.Redis", queue: str) -> None:
        self._redis = client
        self._queue = queue
        self._keys = Keys(queue)
        self.held: set[Key] = set()

    async def note(self, worker: str) -> None:
        """Right after its kill, and well before the 10 s after which others take it over."""
        for _ in range(PATIENCE):
            try:
                self.held |= await self._claimed(worker)
                return
            except (RedisError, OSError):
                await asyncio.sleep(0.1)

    async def _claimed(self, worker: str) -> set[Key]:
        keys = set()
        for incarnation, name in (await self._hash(self._keys.workers)).items():
            if name.decode() != worker and not name.decode().startswith(f"{worker}-"):
                continue  # a worker that is back before its heartbeat lapsed goes by a suffix
            for lane in await self._hash(self._keys.claims(incarnation.decode())):
                head = await self._redis.lindex(f"{self._queue}:lane:{lane.decode()}", 0)
                keys |= _keys_in(cast("bytes", head or b""))
        return keys

    async def dead(self) -> set[Key]:
        """Messages that are listed as dead."""
        keys: set[Key] = set()
        async for name in self._redis.scan_iter(f"{self._queue}:dead:*:body"):
            for body in (await self._hash(name.decode())).values():
                keys |= _keys_in(body)
        return keys

    async def _hash(self, name: str) -> dict[bytes, bytes]:
        return cast("dict[bytes, bytes]", await self._redis.hgetall(name))


def _keys_in(message: bytes) -> set[Key]:
    """A message's marker; the element is its last line."""
    try:
        text = json.loads(message.rpartition(b"\n")[2])["params"]["text"]
    except (ValueError, KeyError, TypeError):
        return set()
    key = key_of(text)
    return {key} if key else set()
