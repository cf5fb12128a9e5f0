"""Natural batches: what gathered while the last commit ran is the next batch."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from pillarbox.errors import StorageUnavailable
from pillarbox.inbox import Accepted, Incoming
from pillarbox.telemetry import get_logger, place
from pillarbox_ingest import metrics

log = get_logger()

Accept = Callable[[Sequence[Incoming]], Awaitable[list[Accepted]]]
Key = tuple[int, int, bytes]

MOST_UPDATES = 500
MOST_BYTES = 8 << 20


@dataclass(slots=True)
class _Entry:
    update: Incoming
    since: float
    answer: asyncio.Future[Accepted] = field(repr=False)


class Buffer:
    """Bounded by bytes. What was not committed `patience` seconds after it came is given up."""

    def __init__(
        self,
        accept: Accept,
        clock: Callable[[], float],
        *,
        patience: float = 5.0,
        most_waiting: int = 64 << 20,
    ) -> None:
        self._accept = accept
        self._clock = clock
        self._patience = patience
        self._most_waiting = most_waiting
        self._entries: dict[Key, _Entry] = {}
        self._queue: list[_Entry] = []
        self._bytes = 0
        self._came = asyncio.Event()

    async def put(self, update: Incoming) -> Accepted:
        """Returns after the commit. Raises StorageUnavailable when that is not to be had in time.

        A repeat of what still waits shares its commit.
        """
        key = (update.bot_id, update.update_id, update.body)
        waiting = self._entries.get(key)
        if waiting is not None:
            await asyncio.shield(waiting.answer)
            metrics.count([(update.bot_id, update.kind, Accepted.REPEAT)])
            return Accepted.REPEAT
        if self._bytes > self._most_waiting:
            raise StorageUnavailable("too much waits for the database")
        entry = _Entry(update, self._clock(), asyncio.get_running_loop().create_future())
        self._entries[key] = entry
        self._queue.append(entry)
        self._bytes += len(update.body)
        self._came.set()
        try:
            return await entry.answer
        finally:
            del self._entries[key]
            self._bytes -= len(update.body)

    async def run(self) -> None:
        """Commits batch after batch until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._flush(), name="accept")
            group.create_task(self._give_up(), name="accept patience")

    async def _flush(self) -> None:
        while True:
            await self._came.wait()
            batch = self._next()
            if not batch:
                self._came.clear()
                continue
            metrics.WAITING.set(len(self._entries))
            metrics.WAITING_BYTES.set(self._bytes)
            await self._commit(batch)

    def _next(self) -> list[_Entry]:
        size = taken = 0
        for entry in self._queue[:MOST_UPDATES]:
            size += len(entry.update.body)
            if taken and size > MOST_BYTES:
                break
            taken += 1
        batch, self._queue = self._queue[:taken], self._queue[taken:]
        return batch

    async def _commit(self, batch: list[_Entry]) -> None:
        updates = [entry.update for entry in batch]
        started = perf_counter()
        try:
            answers = await self._accept(updates)
        except StorageUnavailable as error:
            _refuse(batch, str(error))
            return
        except Exception as error:
            log.exception("a batch could not be accepted", at=place(error))
            _refuse(batch, "accepting failed")
            return
        metrics.COMMIT.observe(perf_counter() - started)
        metrics.BATCH.observe(len(batch))
        for entry, answer in zip(batch, answers, strict=True):
            if not entry.answer.done():
                entry.answer.set_result(answer)
        metrics.count_batch(updates, answers)

    async def _give_up(self) -> None:
        while True:
            await asyncio.sleep(self._patience / 20)
            oldest = self._clock() - self._patience
            late = [entry for entry in self._entries.values() if entry.since < oldest]
            _refuse(late, "the database is slow")
            self._queue = [entry for entry in self._queue if not entry.answer.done()]


def _refuse(entries: Sequence[_Entry], reason: str) -> None:
    for entry in entries:
        if not entry.answer.done():
            entry.answer.set_exception(StorageUnavailable(reason))
