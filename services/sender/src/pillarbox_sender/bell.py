"""The bell of the bots: an idle worker blocks on it, so that a message is claimed as soon as it is filed."""

import asyncio
from collections.abc import Callable, Sequence

from redis.asyncio import Redis

from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.connection import passing
from pillarbox.telemetry import get_logger
from pillarbox_sender.blocking import Blocking
from pillarbox_sender.outage import Outage
from pillarbox_sender.rest import rest

log = get_logger()


class Bell:
    """One ring wakes one worker, so only one that has room listens."""

    def __init__(
        self, redis: "Redis", connect: Callable[[], "Redis"], bells: Sequence[str], block: float
    ) -> None:
        self._redis, self._connect = redis, connect
        self._bells = list(bells)
        self._block = block
        self._wanted = asyncio.Event()
        self._ended = False
        self._blocking: Blocking | None = None
        self._outage = Outage(
            "the bell is not heard: messages may wait for seconds", "the bell is heard again"
        )

    def listen(self, wanted: bool) -> None:
        if wanted or self._ended:
            self._wanted.set()
        else:
            self._wanted.clear()

    async def run(self, stop: asyncio.Event, ring: Callable[[], None]) -> None:
        """Calls `ring` when there may be work, until `stop` and `end`."""
        while not stop.is_set():
            self._blocking = Blocking(self._connect(), self._redis)
            try:
                await self._blocking.open()
                await self._hear(self._blocking, stop, ring)
            except QueueUnavailable as error:
                await rest(stop, self._outage.failed(error))
            finally:
                await self._blocking.close()

    async def end(self) -> None:
        """Once stop is set: `run` returns now, and not when its pop does by itself."""
        self._ended = True
        self._wanted.set()
        if self._blocking:
            await self._blocking.unblock()

    async def pass_on(self) -> None:
        """For another worker: this one heard the bell and has no room."""
        try:
            with passing():
                for bell in self._bells:
                    await self._redis.lpush(bell, b"1")
        except QueueUnavailable as error:
            log.debug("the bell could not be passed on", error=str(error))

    async def _hear(self, blocking: Blocking, stop: asyncio.Event, ring: Callable[[], None]) -> None:
        while True:
            await self._wanted.wait()
            if stop.is_set():
                return
            with passing():
                heard = await blocking.client.blpop(self._bells, timeout=self._block)
            self._outage.ended()
            if heard is not None:
                ring()
