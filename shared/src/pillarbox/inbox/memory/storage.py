"""The inbox in a process's memory."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

from pillarbox.ids import BotId, Token
from pillarbox.inbox.filtering import Filter, Progress, Which, unheard
from pillarbox.inbox.handing import in_handfuls
from pillarbox.inbox.memory.lanes import Lanes, Moment
from pillarbox.inbox.memory.state import State
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
from pillarbox.inbox.storage import Filer, Renewer, Storage

MAX_FAILED = 1000


class MemoryStorage(Storage):
    """Gone with its process; a second process with the same bot is not detected."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._clock = clock
        self._guard = threading.Lock()  # against the renewer's thread
        self._state = State(Lanes(limits or Limits(max_failed=MAX_FAILED)))
        self._came = asyncio.Event()
        self._relaying = asyncio.Lock()

    @classmethod
    def from_url(cls, url: str, limits: Limits) -> Self:
        return cls(replace(limits, max_failed=min(limits.max_failed, MAX_FAILED)))

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ping(self) -> None: ...

    async def try_lock(self, bot_ids: Sequence[BotId]) -> bool:
        return True

    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        with self._guard:
            answers = self._state.accept(updates, self._now())
        self._came.set()
        return answers

    async def malformed(self, body: Malformed) -> None:
        self._state.keep_malformed(body)

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        moment = Moment(self._now(), self._clock())
        with self._guard:
            turn = self._state.turn(ends, slots, suspects=suspects, moment=moment)
        if turn.stale or any(isinstance(end, Released | Later | Retried) for end in ends):
            self._came.set()
        return turn

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        return self._state.lanes.fsm.read(keys)

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool:
        with self._guard:
            return self._state.lanes.fsm.write(writes, self._state.lanes.number)

    def renewer(self) -> Renewer:
        return MemoryRenewer(self._state, self._guard, self._clock)

    async def wait(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._came.wait()
        except TimeoutError:
            return
        self._came.clear()

    async def relay(self, file: Filer, limit: int) -> int:
        async def hand_on(most: int) -> Sequence[OutboxRow]:
            rows = self._state.oldest_outbox(most)
            if rows:
                await file(rows)
                self._state.relayed(rows)
            return rows

        async with self._relaying:
            return await in_handfuls(hand_on, limit)

    async def requeue(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        with self._guard:
            moved = self._state.requeue(bot_id, which, by, self._now())
        progress(moved.moved)
        self._came.set()
        return moved

    async def discard(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        moved = self._state.discard(bot_id, which, by, self._now())
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
        return self._state.failed_updates(bot_id, before, limit, matching)

    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        return self._state.audited(bot_id, limit)

    async def counts(self, bot_id: BotId) -> Counts:
        return self._state.counts(bot_id)

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return self._state.pins.pinned(bot_id, user_id)

    async def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        return self._state.pins.pin(bot_id, user_id, fingerprint, by, self._now())

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        return self._state.pins.trust(bot_id, user_id, fingerprint, by, self._now())

    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        return self._state.pins.forget(bot_id, user_id, by, self._now())

    async def sweep(self) -> None:
        self._state.forget(self._now())


class MemoryRenewer:
    def __init__(self, state: State, guard: threading.Lock, clock: Callable[[], float]) -> None:
        self._state = state
        self._guard = guard
        self._clock = clock

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        with self._guard:
            return self._state.lanes.renew(tokens, self._clock())

    def close(self) -> None: ...
