"""A door: one worker at a time takes from it, and files what it took into the lanes, in order."""

import asyncio
from collections.abc import Callable
from typing import cast

from redis.asyncio import Redis

from pillarbox.errors import QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.connection import Client, passing
from pillarbox.outbound.keys import DoorKeys
from pillarbox.outbound.lanes import AT_ONCE, BYTES_AT_ONCE, Filed, Filing, Lanes, LeaseLost, Source
from pillarbox.telemetry import get_logger
from pillarbox_sender import metrics
from pillarbox_sender.blocking import Blocking, end_connection
from pillarbox_sender.outage import Outage
from pillarbox_sender.rest import rest
from pillarbox_sender.worker import Identity, Worker

log = get_logger()

STAND_BY = 1.0
MOST_RECOVERIES = 3


class Door:
    def __init__(
        self,
        key: str,
        redis: "Redis",
        connect: Callable[[], Client],
        lanes: Lanes,
        worker: Worker,
        *,
        bulk: bool,
        bot: BotId | None,
        block: float,
        filed: Callable[[], None],
    ) -> None:
        self._keys = DoorKeys(key)
        self._redis, self._connect, self._lanes, self._worker = redis, connect, lanes, worker
        self._bulk, self._bot, self._block = bulk, bot, block
        self._filed = filed
        self._label = "bulk" if bulk else "main"
        self._token = 0
        self._looked_again = False
        self._blocking: Blocking | None = None
        self._outage = Outage(
            "the door cannot be reached", "the door is reached again", {"door": self._label}
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Takes while it holds the lease, stands by while another worker does; until `stop` and `end`."""
        while not stop.is_set():
            try:
                if await self._stand_by(stop):
                    await self._hold(stop)
            except LeaseLost:
                log.warning("another worker took the door over", door=self._label)
            except QueueUnavailable as error:
                await rest(stop, self._outage.failed(error))
            self._token = 0

    async def end(self) -> None:
        if self._blocking:
            await self._blocking.unblock()

    async def renew(self) -> None:
        """With the heartbeat. A lease that is lost shows at the next take."""
        if self._token:
            await self._lease("renew", self._token)

    async def _lease(self, verb: str, *args: str | int) -> object:
        return await self._lanes.scripts.call("lease", verb, self._keys.lease, *args)

    async def _stand_by(self, stop: asyncio.Event) -> bool:
        left = await self._lease("look", _owner(self._worker.identity))
        if not left:
            return True
        await rest(stop, STAND_BY)
        return False

    async def _hold(self, stop: asyncio.Event) -> None:
        self._blocking = Blocking(self._connect(), self._redis)
        identity = self._worker.identity
        try:
            await self._blocking.open()
            if not await self._take_lease(identity, self._blocking.label):
                return
            await self._file_found(identity)
            await self._look_again(identity)
            await self._take_all(identity, self._blocking, stop)
            await self._lease("release", self._token)
        finally:
            await self._blocking.close()

    async def _take_lease(self, identity: Identity, connection: str) -> bool:
        """The holder before can take nothing more once its connection is ended."""
        answer = await self._lease("take", _owner(identity), connection, identity.name)
        token, before = cast("tuple[int, bytes]", answer)
        self._token = int(token)
        if self._token and before:
            await end_connection(self._redis, before.decode())
        return bool(self._token)

    async def _file_found(self, identity: Identity) -> None:
        """What holders before had taken goes first, whoever they were."""
        with passing():
            members = cast("set[bytes]", await self._redis.smembers(self._keys.lists))
        names = [name.decode() for name in members]
        for name in sorted(names, key=lambda name: name == identity.name):
            found = self._keys.processing(name)
            while elements := await self._found(found):
                await self._file(found, elements)
                with passing():
                    await self._redis.hdel(self._keys.lease, "recoveries")
            if name != identity.name:
                await self._lease("empty", self._token, found, name)

    async def _found(self, found: str) -> list[bytes]:
        """All that fits; one by one where filing ended the process before, without the one that did it."""
        with passing():
            if not await self._redis.exists(found):
                return []
            recoveries = await self._redis.hincrby(self._keys.lease, "recoveries", 1)
            last = 0 if recoveries > 1 else AT_ONCE - 1
            elements = cast("list[bytes]", await self._redis.lrange(found, 0, last))
        if recoveries > MOST_RECOVERIES:
            await self._lanes.poison(elements[0], self._source(found))
            with passing():
                await self._redis.hdel(self._keys.lease, "recoveries")
            return await self._found(found)
        return elements

    async def _look_again(self, identity: Identity) -> None:
        """Once a start: a new configuration may read what an earlier run could not."""
        if not self._looked_again:
            mine = self._keys.processing(identity.name)
            await self._lanes.scripts.call("again", self._keys.kept, mine, self._keys.lease, self._token)
            self._looked_again = True

    async def _take_all(self, identity: Identity, blocking: Blocking, stop: asyncio.Event) -> None:
        mine = self._keys.processing(identity.name)
        while not stop.is_set():
            elements = await self._take(mine)
            if elements:
                await self._file(mine, elements)
            else:
                await blocking.call("BLMOVE", self._keys.door, mine, "LEFT", "RIGHT", self._block)
            self._outage.ended()
        while elements := await self._take(mine, most=0):
            await self._file(mine, elements)

    async def _take(self, mine: str, most: int = AT_ONCE) -> list[bytes]:
        elements = await self._lanes.scripts.call(
            "take", self._keys.door, mine, self._keys.lease, self._token, most, BYTES_AT_ONCE
        )
        if elements is None:
            raise LeaseLost("the door's lease is another worker's")
        return list(elements)

    async def _file(self, found: str, elements: list[bytes]) -> None:
        filings = [Filing(element, self._bot, bulk=self._bulk) for element in elements]
        filed = await self._lanes.file(filings, self._source(found))
        self._count(filed)
        if filed.rung:
            self._filed()

    def _source(self, found: str) -> Source:
        return Source(found, self._keys.lease, self._token)

    def _count(self, filed: Filed) -> None:
        for fate in ("filed", "repeats", "dead", "kept"):
            metrics.FILED.labels(self._label, fate).inc(getattr(filed, fate))
        if filed.dead or filed.kept:
            reasons = ", ".join(f"{reason} {count}" for reason, count in filed.reasons.most_common())
            log.warning(
                "elements are set aside", door=self._label, dead=filed.dead, kept=filed.kept, reasons=reasons
            )


def _owner(identity: Identity) -> str:
    return identity.incarnation
