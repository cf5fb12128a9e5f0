"""Station 2 to 3: what finished updates left in the outbox goes into the lanes of chats, in order."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from pillarbox.backoff import Backoff
from pillarbox.errors import QueueUnavailable, StorageUnavailable
from pillarbox.inbox import OutboxRow
from pillarbox.outbound.lanes import Filed, Filing
from pillarbox.telemetry import get_logger
from pillarbox_dispatcher import metrics
from pillarbox_dispatcher.station import Station

LIMIT = 500
EVERY = 1.0

log = get_logger()


class Lanes(Protocol):
    """What `pillarbox.outbound.lanes.Lanes` does for the relay: an id is filed once."""

    async def file(self, filings: Sequence[Filing], /) -> Filed: ...


class Relay:
    """Relays when it is rung, and every second what other dispatchers left when they died."""

    def __init__(self, storage: Station, lanes: Lanes, *, limit: int = LIMIT, every: float = EVERY) -> None:
        self._storage = storage
        self._lanes = lanes
        self._limit = limit
        self._every = every
        self._rung = asyncio.Event()
        self._handed: set[str] = set()

    def ring(self) -> None:
        self._rung.set()

    async def run(self) -> None:
        """Until it is cancelled. While PostgreSQL or Redis is away the rows wait where they are."""
        backoff = Backoff()
        while True:
            await self._until_rung()
            try:
                await self.drain()
            except Exception as error:  # a bug here must not stop what other rows need
                _log_failure(error, backoff)
                await asyncio.sleep(backoff.delay())
                self._rung.set()
            else:
                if not backoff.fresh:
                    log.info("the outbox is relayed again")
                backoff.reset()

    async def drain(self) -> None:
        """Relays until nothing is left. Raises StorageUnavailable or QueueUnavailable; nothing is lost."""
        more = True
        while more:
            more = await self._storage.relay(self._file, self._limit) >= self._limit
            self._handed.clear()

    async def _until_rung(self) -> None:
        try:
            async with asyncio.timeout(self._every):
                await self._rung.wait()
        except TimeoutError:
            return
        finally:
            self._rung.clear()

    async def _file(self, rows: Sequence[OutboxRow]) -> None:
        """A row that is no message becomes a dead one there; it holds up nobody."""
        again = sum(row.id in self._handed for row in rows)
        self._handed.update(row.id for row in rows)
        filed = await self._lanes.file([Filing(row.body, row.bot_id, row.id) for row in rows])
        metrics.relayed.inc(len(rows) - filed.repeats)
        metrics.relay_repeats.inc(filed.repeats)
        if filed.repeats > again:
            log.info("the queue had rows of the outbox already, as after a crash", rows=filed.repeats - again)


def _log_failure(error: Exception, backoff: Backoff) -> None:
    """One line for an outage, one for each bug."""
    if not isinstance(error, StorageUnavailable | QueueUnavailable):
        log.error("relaying broke, it is tried again", exc_info=error)
    elif backoff.fresh:
        log.warning("the outbox waits: its database or Redis is away", exc_info=error)
