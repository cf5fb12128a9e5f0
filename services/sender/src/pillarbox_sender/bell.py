"""What an idle worker blocks on: its hand, and the bells of its bots."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from redis.asyncio import Redis

from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.connection import Client, passing
from pillarbox.telemetry import get_logger
from pillarbox_sender.blocking import Blocking, end_connection
from pillarbox_sender.offers import MOST_OFFERED
from pillarbox_sender.outage import Outage
from pillarbox_sender.rest import rest

log = get_logger()


class Listener(Protocol):
    def wake(self) -> None:
        """The bell listens from now on."""

    def ring(self) -> None:
        """There may be work."""

    def handed(self, elements: Sequence[bytes]) -> None:
        """Claims that were made for this worker."""

    def unheard(self) -> None:
        """A pop broke off: what it took may be lost on its way here."""


class Bell:
    """One ring wakes one worker, so only one that has room listens. `hand` names the worker's list."""

    def __init__(
        self,
        redis: "Redis",
        connect: Callable[[], Client],
        hand: Callable[[], str],
        bells: Sequence[str],
        block: float,
    ) -> None:
        self._redis, self._connect = redis, connect
        self._hand, self._bells = hand, list(bells)
        self._heard_hand = ""
        self._block = block
        self._wanted = asyncio.Event()
        self._ended = False
        self._blocking: Blocking | None = None
        self._listened = ""
        self._outage = Outage(
            "the bell is not heard: messages may wait for seconds", "the bell is heard again"
        )

    def listen(self, wanted: bool) -> None:
        if wanted or self._ended:
            self._wanted.set()
        else:
            self._wanted.clear()

    @property
    def hears(self) -> bool:
        """What is put into the hand now is popped."""
        return self._heard_hand == self._hand()

    async def run(self, stop: asyncio.Event, listener: Listener) -> None:
        """Until `stop` and `end`."""
        while not stop.is_set():
            self._blocking = Blocking(self._connect(), self._redis)
            try:
                await self._open(self._blocking)
                self._heard_hand = self._hand()
                listener.wake()
                await self._hear(self._blocking, stop, listener)
            except QueueUnavailable as error:
                self._heard_hand = ""
                listener.unheard()
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

    async def _open(self, blocking: Blocking) -> None:
        """Redis may think for a while that the connection before is alive, and give it what is then lost."""
        await blocking.open()
        if self._listened:
            await end_connection(self._redis, self._listened)
        self._listened = blocking.label

    async def _hear(self, blocking: Blocking, stop: asyncio.Event, listener: Listener) -> None:
        while True:
            await self._wanted.wait()
            if stop.is_set():
                return
            hand = self._heard_hand = self._hand()
            popped = await self._pop(blocking, [hand, *self._bells])
            self._outage.ended()
            if popped is None:
                continue
            key, elements = popped
            if key.decode() == hand:
                listener.handed(elements)
                await asyncio.sleep(0)  # so that they are on their way before the next pop
            else:
                listener.ring()

    async def _pop(self, blocking: Blocking, keys: list[str]) -> tuple[bytes, list[bytes]] | None:
        popped = await blocking.call("BLMPOP", self._block, len(keys), *keys, "LEFT", "COUNT", MOST_OFFERED)
        return None if popped is None else (popped[0], popped[1])
