"""The inbox in one file, for one machine."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Self

from pillarbox.errors import PollingConflictError, StorageUnavailable
from pillarbox.ids import BotId, RowId, Token
from pillarbox.inbox.filtering import Filter, Progress, Which, unheard
from pillarbox.inbox.fingerprints import fingerprint_of
from pillarbox.inbox.handing import in_handfuls
from pillarbox.inbox.locks import BotLock
from pillarbox.inbox.sqlite import accepting, failures, files, pinning, reading, statements, sweeping
from pillarbox.inbox.sqlite import fsm as states
from pillarbox.inbox.sqlite.driver import Driver
from pillarbox.inbox.sqlite.numbers import numbers
from pillarbox.inbox.sqlite.times import micros
from pillarbox.inbox.sqlite.turning import Moment, turn
from pillarbox.inbox.states import (
    Accepted,
    Audited,
    Counts,
    End,
    FailedUpdate,
    FsmKey,
    FsmValue,
    FsmWrite,
    Incoming,
    Later,
    Limits,
    Malformed,
    Moved,
    OutboxRow,
    Pin,
    Place,
    Released,
    Retried,
    Turn,
)
from pillarbox.inbox.storage import Filer, Storage

RESCUE_EVERY = 0.25


class SQLiteStorage(Storage):
    """Durable in WAL mode with synchronous=FULL. Several bots in one file; one process a bot handles them.

    Other processes may open the file too, for accepted updates and for failed ones.
    """

    durable: ClassVar[bool] = True

    def __init__(
        self,
        path: str | Path,
        limits: Limits | None = None,
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = Path(path)
        self._limits = limits or Limits()
        self._now = now
        self._clock = clock
        self._driver = Driver(self._path)
        self._locks: dict[BotId, BotLock] = {}
        self._rescue_at = float("-inf")
        self._came = asyncio.Event()
        self._relaying = asyncio.Lock()

    @classmethod
    def from_url(cls, url: str, limits: Limits) -> Self:
        return cls(files.path_of(url), limits)

    async def open(self) -> None:
        await self._driver.start()

    async def close(self) -> None:
        await self._driver.stop()
        for bot_id in list(self._locks):
            self._locks.pop(bot_id).release()

    async def ping(self) -> None:
        await self._driver.call(lambda db: db.execute(statements.PING).fetchone())

    async def try_lock(self, bot_ids: Sequence[BotId]) -> bool:
        try:
            await self.lock(bot_ids)
        except PollingConflictError:
            return False
        return True

    async def lock(self, bot_ids: Sequence[BotId]) -> None:
        """What the last holder had leased is free at once: its process has ended."""
        taken: dict[BotId, BotLock] = {}
        try:
            for bot_id in set(bot_ids) - set(self._locks):
                taken[bot_id] = _locked(self._path, bot_id)
            await self._driver.call(lambda db: _taken_over(db, list(taken)))
        except BaseException:
            for lock in taken.values():
                lock.release()
            raise
        self._locks |= taken
        self._rescue_at = float("-inf")

    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        now = micros(self._now())
        answers = await self._driver.call(lambda db: accepting.accept(db, updates, now))
        self._came.set()
        return answers

    async def malformed(self, body: Malformed) -> None:
        now, most = micros(self._now()), self._limits.max_malformed
        await self._driver.call(lambda db: accepting.malformed(db, body, most, now))

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        moment = Moment(micros(self._now()), self._clock())
        rescue, bots = self._rescues(moment.tick), frozenset(self._locks)
        done = await self._driver.call(
            lambda db: turn(
                db,
                ends,
                slots,
                suspects=suspects,
                fsm=fsm,
                rescue=rescue,
                bots=bots,
                limits=self._limits,
                moment=moment,
            )
        )
        if done.stale or any(isinstance(end, Released | Later | Retried) for end in ends):
            self._came.set()
        return done

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        return await self._driver.call(lambda db: states.read(db, keys))

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool:
        now = micros(self._now())
        return await self._driver.call(lambda db: states.write(db, writes, numbers(db, 1), now))

    def _rescues(self, tick: float) -> bool:
        if tick < self._rescue_at:
            return False
        self._rescue_at = tick + min(RESCUE_EVERY, self._limits.lease / 4)
        return True

    def renewer(self) -> "SQLiteRenewer":
        return SQLiteRenewer(self._driver, self._limits.lease, self._clock)

    async def wait(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._came.wait()
        except TimeoutError:
            return
        self._came.clear()

    async def relay(self, file: Filer, limit: int) -> int:
        """Rows go after `file` has them, in a transaction of their own: no write waits for the queue."""

        async def hand_on(most: int) -> Sequence[OutboxRow]:
            bots = sorted(self._locks)
            rows = await self._driver.call(lambda db: reading.outbox(db, bots, most))
            if rows:
                await file(rows)
                gone = [(row.bot_id, row.row, row.n) for row in rows]
                await self._driver.call(lambda db: db.executemany(statements.RELAYED, gone))
            return rows

        async with self._relaying:
            return await in_handfuls(hand_on, limit)

    async def requeue(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        now = micros(self._now())
        moved = await failures.move(self._driver, "retry", bot_id, which, by, now, progress)
        self._came.set()
        return moved

    async def discard(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        now = micros(self._now())
        return await failures.move(self._driver, "discard", bot_id, which, by, now, progress)

    async def failed_updates(
        self,
        bot_id: BotId,
        *,
        before: FailedUpdate | Place | None = None,
        limit: int = 100,
        matching: Filter | None = None,
    ) -> list[FailedUpdate]:
        return await self._driver.call(lambda db: reading.failed_updates(db, bot_id, before, limit, matching))

    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        return await self._driver.call(lambda db: reading.audit(db, bot_id, limit))

    async def malformed_bodies(
        self, *, before: RowId | None = None, limit: int = 100
    ) -> list[reading.MalformedBody]:
        """Of all bots in this file, the newest first; `before`: what follows this one in the list."""
        return await self._driver.call(lambda db: reading.malformed_bodies(db, before, limit))

    async def counts(self, bot_id: BotId) -> Counts:
        return await self._driver.call(lambda db: reading.counts(db, bot_id))

    async def knows(self, bot_id: BotId) -> bool:
        return await self._driver.call(lambda db: reading.knows(db, bot_id))

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return await self._driver.call(lambda db: pinning.pinned(db, bot_id, user_id))

    async def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        key, now = fingerprint_of(fingerprint), micros(self._now())
        return await self._driver.call(lambda db: pinning.pin(db, bot_id, user_id, key, by, now))

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        key, now = fingerprint_of(fingerprint), micros(self._now())
        return await self._driver.call(lambda db: pinning.trust(db, bot_id, user_id, key, by, now))

    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        now = micros(self._now())
        return await self._driver.call(lambda db: pinning.forget(db, bot_id, user_id, by, now))

    async def sweep(self) -> None:
        await sweeping.sweep(
            self._driver, micros(self._now() - self._limits.seen_for), self._limits.max_failed
        )


class SQLiteRenewer:
    """Asks SQLite's own thread, which no blocked event loop holds up."""

    def __init__(self, driver: Driver, lease: float, clock: Callable[[], float]) -> None:
        self._driver = driver
        self._lease = lease
        self._clock = clock

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        until = self._clock() + self._lease
        return self._driver.call_blocking(
            lambda db: frozenset(
                token for token in tokens if not db.execute(statements.RENEW, (until, token)).rowcount
            )
        )

    def close(self) -> None: ...


def _taken_over(db: sqlite3.Connection, bot_ids: Sequence[BotId]) -> None:
    for bot_id in bot_ids:
        db.execute(statements.BOT_KNOWN, (bot_id,))
        db.execute(statements.ABANDONED, (bot_id,))


def _locked(path: Path, bot_id: BotId) -> BotLock:
    try:
        return BotLock.take(path, bot_id)
    except OSError as error:
        raise StorageUnavailable(f"the lock beside {path} cannot be taken ({error.strerror})") from error
