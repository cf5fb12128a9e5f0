"""A storage of one's own: the whole inbox in one file, which every change writes anew.

Each call locks the file against other processes, reads it, lets the rules of `State` act on it, and puts the
changed one in its place: written beside it, on disk, renamed. So a crash leaves the old file or the new one.
That is enough for some hundreds of waiting updates; what the rules need of a storage is all here.

    STORAGE=examples.own_storage.storage:FileStorage DATABASE_URL=/var/lib/bot/inbox pillarbox run
"""

import asyncio
import fcntl
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from pillarbox.errors import PollingConflictError, StorageUnavailable
from pillarbox.ids import BotId, Token
from pillarbox.inbox import (
    Accepted,
    Audited,
    Counts,
    End,
    FailedUpdate,
    Filter,
    FsmKey,
    FsmValue,
    FsmWrite,
    Incoming,
    Limits,
    Malformed,
    Moved,
    OutboxRow,
    Pin,
    Place,
    Progress,
    Storage,
    Turn,
    Which,
    unheard,
)
from pillarbox.inbox.handing import in_handfuls
from pillarbox.inbox.locks import BotLock
from pillarbox.inbox.memory.lanes import Lanes, Moment
from pillarbox.inbox.memory.state import State
from pillarbox.inbox.storage import Filer


class Files:
    """Reads and replaces the file, one process at a time."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path = path
        self._limits = limits

    @contextmanager
    def state(self) -> Iterator[State]:
        """What is changed in the block is on disk after it; an error changes nothing."""
        try:
            with self._alone():
                state = self._read()
                yield state
                self._write(state)
        except OSError as error:
            raise StorageUnavailable(f"{self._path} cannot be used ({error.strerror})") from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        guard = os.open(self._path.with_name(f"{self._path.name}.guard"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield
        finally:
            os.close(guard)

    def _read(self) -> State:
        if not self._path.exists():
            return State(Lanes(self._limits))
        state: State = pickle.loads(self._path.read_bytes())  # noqa: S301 - our own file, ours alone
        state.lanes.limits = self._limits
        return state

    def _write(self, state: State) -> None:
        beside = self._path.with_name(f"{self._path.name}.new")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            pickle.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # or the rename itself could be lost
        finally:
            os.close(folder)


class FileStorage(Storage):
    durable: ClassVar[bool] = True

    def __init__(
        self,
        path: Path,
        limits: Limits,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._files = Files(path, limits)
        self._now = now
        self._clock = clock
        self._locks: dict[BotId, BotLock] = {}
        self._came = asyncio.Event()
        self._relaying = asyncio.Lock()

    @classmethod
    def from_url(cls, url: str, limits: Limits) -> Self:
        return cls(Path(url), limits)

    async def open(self) -> None:
        await self.ping()

    async def close(self) -> None:
        while self._locks:
            self._locks.popitem()[1].release()

    async def ping(self) -> None:
        with self._files.state():
            return

    async def try_lock(self, bot_ids: Sequence[BotId]) -> bool:
        """An OS lock a bot, which ends with the process; what its last holder had leased is free then."""
        taken: dict[BotId, BotLock] = {}
        try:
            for bot_id in set(bot_ids) - set(self._locks):
                taken[bot_id] = BotLock.take(self._path, bot_id)
        except PollingConflictError:
            for lock in taken.values():
                lock.release()
            return False
        self._locks |= taken
        with self._files.state() as state:
            state.lanes.abandon(set(taken))
        return True

    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        with self._files.state() as state:
            answers = state.accept(updates, self._now())
        self._came.set()
        return answers

    async def malformed(self, body: Malformed) -> None:
        with self._files.state() as state:
            state.keep_malformed(body)

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        moment = Moment(self._now(), self._clock())
        with self._files.state() as state:
            return state.turn(ends, slots, suspects=suspects, moment=moment, bots=set(self._locks))

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        with self._files.state() as state:
            return state.lanes.fsm.read(keys)

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool:
        with self._files.state() as state:
            return state.lanes.fsm.write(writes, state.lanes.number)

    def renewer(self) -> "FileRenewer":
        return FileRenewer(self._files, self._clock)

    async def wait(self, timeout: float) -> None:
        """Our own updates are told at once; what other processes put back is found by looking."""
        try:
            async with asyncio.timeout(timeout):
                await self._came.wait()
        except TimeoutError:
            return
        self._came.clear()

    async def relay(self, file: Filer, limit: int) -> int:
        """Rows are forgotten after `file` has them: a crash in between hands them out again."""

        async def hand_on(most: int) -> Sequence[OutboxRow]:
            with self._files.state() as state:
                rows = state.oldest_outbox(most, set(self._locks))
            if rows:
                await file(rows)
                with self._files.state() as state:
                    state.relayed(rows)
            return rows

        async with self._relaying:
            return await in_handfuls(hand_on, limit)

    async def requeue(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        with self._files.state() as state:
            moved = state.requeue(bot_id, which, by, self._now())
        progress(moved.moved)
        self._came.set()
        return moved

    async def discard(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        with self._files.state() as state:
            moved = state.discard(bot_id, which, by, self._now())
        progress(moved.moved)
        return moved

    async def failed_updates(
        self,
        bot_id: BotId,
        *,
        before: FailedUpdate | Place | None = None,
        limit: int = 100,
        matching: Filter | None = None,
    ) -> list[FailedUpdate]:
        with self._files.state() as state:
            return state.failed_updates(bot_id, before, limit, matching)

    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        with self._files.state() as state:
            return state.audited(bot_id, limit)

    async def counts(self, bot_id: BotId) -> Counts:
        with self._files.state() as state:
            return state.counts(bot_id)

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        with self._files.state() as state:
            return state.pins.pinned(bot_id, user_id)

    async def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        with self._files.state() as state:
            return state.pins.pin(bot_id, user_id, fingerprint, by, self._now())

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        with self._files.state() as state:
            return state.pins.trust(bot_id, user_id, fingerprint, by, self._now())

    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        with self._files.state() as state:
            return state.pins.forget(bot_id, user_id, by, self._now())

    async def sweep(self) -> None:
        with self._files.state() as state:
            state.forget(self._now())


class FileRenewer:
    """For the watchdog's thread; the file's lock keeps it apart from the event loop."""

    def __init__(self, files: Files, clock: Callable[[], float]) -> None:
        self._files = files
        self._clock = clock

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        with self._files.state() as state:
            return state.lanes.renew(tokens, self._clock())

    def close(self) -> None: ...
