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
SOON = 0.05
"""Seconds until rows are taken out of the outbox that the queue has already: nobody waits for that."""

log = get_logger()


class Lanes(Protocol):
    """What `pillarbox.outbound.lanes.Lanes` does for the relay: an id is filed once."""

    async def file(self, filings: Sequence[Filing], /) -> Filed: ...


class Relay:
    """Relays when it is rung, and every second what other dispatchers left when they died.

    What it knows to be in the queue it files no second time; there, an id is filed once in any case.
    """

    def __init__(self, storage: Station, lanes: Lanes, *, limit: int = LIMIT, every: float = EVERY) -> None:
        self._storage = storage
        self._lanes = lanes
        self._limit = limit
        self._every = every
        self._rung = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._there: set[str] = set()
        self._there_before: set[str] = set()

    def ring(self) -> None:
        self._rung.set()

    def filed(self, rows: Sequence[OutboxRow]) -> None:
        """The queue has these, so they need only leave the outbox. None: all there is must be relayed."""
        if not rows:
            self.ring()
            return
        self._there.update(row.id for row in rows)
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON, self._ring_now)

    def _ring_now(self) -> None:
        self._soon = None
        self.ring()

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
            self._there_before, self._there = self._there, set()

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
        known = self._there | self._there_before if self._there_before else self._there
        left = [row for row in rows if row.id not in known]
        if not left:
            return
        await file(self._lanes, left)
        self._there.update(row.id for row in left)


async def file(lanes: Lanes, rows: Sequence[OutboxRow]) -> None:
    """Under the ids of the rows, and counted."""
    filed = await lanes.file([Filing(row.body, row.bot_id, row.id) for row in rows])
    metrics.relayed.inc(len(rows) - filed.repeats)
    metrics.relay_repeats.inc(filed.repeats)


def _log_failure(error: Exception, backoff: Backoff) -> None:
    """One line for an outage, one for each bug."""
    if not isinstance(error, StorageUnavailable | QueueUnavailable):
        log.error("relaying broke, it is tried again", exc_info=error)
    elif backoff.fresh:
        log.warning("the outbox waits: its database or Redis is away", exc_info=error)
