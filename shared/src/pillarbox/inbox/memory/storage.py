"""The inbox in a process's memory."""

import asyncio
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, Self

from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox.memory.lanes import Lanes, at
from pillarbox.inbox.repeats import Key, key, storable
from pillarbox.inbox.states import (
    Accepted,
    Audited,
    Counts,
    End,
    FailedUpdate,
    Incoming,
    Later,
    Limits,
    Malformed,
    Moved,
    OutboxRow,
    Released,
    Turn,
)
from pillarbox.inbox.storage import Filer, Storage

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
        self._limits = limits or Limits(max_failed=MAX_FAILED)
        self._now = now
        self._guard = threading.Lock()  # against the renewer's thread
        self._lanes = Lanes(self._limits, now, clock)
        self._seen: dict[Key, float] = {}
        self._bodies: Counter[tuple[int, int]] = Counter()
        self._failed: dict[BotId, list[FailedUpdate]] = defaultdict(list)
        self._malformed: dict[BotId, deque[Malformed]] = defaultdict(
            lambda: deque(maxlen=self._limits.max_malformed)
        )
        self._trimmed: Counter[tuple[str, BotId]] = Counter()
        self._outbox: list[OutboxRow] = []
        self._audit: list[Audited] = []
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

    # ingest

    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        with self._guard:
            answers = [self._accept(u) if storable(u) else Accepted.REFUSED for u in updates]
        self._came.set()
        return answers

    def _accept(self, update: Incoming) -> Accepted:
        known, which = key(update), (update.bot_id, update.update_id)
        if known in self._seen:
            return Accepted.REPEAT
        self._seen[known] = self._now()
        self._bodies[which] += 1
        self._lanes.append(update)
        return Accepted.NEW if self._bodies[which] == 1 else Accepted.NEW_BODY

    async def malformed(self, body: Malformed) -> None:
        kept = self._malformed[body.bot_id]
        self._trimmed["malformed", body.bot_id] += len(kept) == kept.maxlen
        kept.append(body)

    # dispatcher

    async def turn(self, ends: Sequence[End], slots: int, *, suspects: bool = False) -> Turn:
        with self._guard:
            turn = self._lanes.turn(ends, slots, suspects)
            self._outbox += self._lanes.outbox
            self._keep(self._lanes.failures)
            self._lanes.outbox, self._lanes.failures = [], []
        if any(isinstance(end, Released | Later) for end in ends):
            self._came.set()
        return turn

    def _keep(self, written: Sequence[FailedUpdate]) -> None:
        """The newest stay, and what was just written in any case."""
        for failed in written:
            self._failed[failed.bot_id].append(failed)
        rows = {failed.row for failed in written}
        for bot_id in {failed.bot_id for failed in written}:
            newest = sorted(self._failed[bot_id], key=_age, reverse=True)
            kept = [f for n, f in enumerate(newest) if n < self._limits.max_failed or f.row in rows]
            self._trimmed["failed", bot_id] += len(newest) - len(kept)
            self._failed[bot_id] = kept

    def renewer(self) -> "MemoryRenewer":
        return MemoryRenewer(self._lanes, self._guard)

    async def wait(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._came.wait()
        except TimeoutError:
            return
        self._came.clear()

    async def relay(self, file: Filer, limit: int) -> int:
        async with self._relaying:
            rows = sorted(self._outbox, key=lambda row: (row.row, row.n))[:limit]
            if rows:
                await file(rows)
                gone = {row.id for row in rows}
                self._outbox = [row for row in self._outbox if row.id not in gone]
            return len(rows)

    # people

    async def requeue(self, bot_id: BotId, update_ids: Sequence[UpdateId] | None, by: str) -> Moved:
        picked = self._pick("retry", bot_id, update_ids, by)
        moved = self._moved(bot_id, update_ids, picked)
        with self._guard:
            for f in picked:
                self._lanes.append(
                    Incoming(bot_id, f.update_id, f.kind, f.lane, f.body, f.chat_id, f.user_id)
                )
        self._came.set()
        return moved

    async def discard(self, bot_id: BotId, update_ids: Sequence[UpdateId] | None, by: str) -> Moved:
        return self._moved(bot_id, update_ids, self._pick("discard", bot_id, update_ids, by))

    def _pick(
        self, action: Literal["retry", "discard"], bot_id: BotId, ids: Sequence[UpdateId] | None, by: str
    ) -> list[FailedUpdate]:
        """Takes them off the failed list, in the order of acceptance."""
        failed, wanted = self._failed[bot_id], None if ids is None else set(ids)
        picked = sorted((f for f in failed if wanted is None or f.update_id in wanted), key=lambda f: f.row)
        rows = {f.row for f in picked}
        self._failed[bot_id] = [f for f in failed if f.row not in rows]
        self._audit += [Audited(at(self._now()), bot_id, f.update_id, by, action) for f in picked]
        return picked

    def _moved(self, bot_id: BotId, ids: Sequence[UpdateId] | None, picked: Sequence[FailedUpdate]) -> Moved:
        done = {f.update_id for f in picked}
        left = [update_id for update_id in dict.fromkeys(ids or ()) if update_id not in done]
        waiting = {update.update_id for update in self._lanes.waiting(bot_id)}
        return Moved(
            len(picked),
            unknown=[update_id for update_id in left if update_id not in waiting],
            running=[update_id for update_id in left if update_id in waiting],
        )

    async def failed_updates(
        self, bot_id: BotId, *, before: FailedUpdate | None = None, limit: int = 100
    ) -> list[FailedUpdate]:
        newest = sorted(self._failed[bot_id], key=_age, reverse=True)
        return [f for f in newest if before is None or _age(f) < _age(before)][:limit]

    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        return [noted for noted in reversed(self._audit) if noted.bot_id == bot_id][:limit]

    async def counts(self, bot_id: BotId) -> Counts:
        return Counts(
            pending=len(self._lanes.waiting(bot_id)),
            failed=len(self._failed[bot_id]),
            failed_trimmed=self._trimmed["failed", bot_id],
            malformed=len(self._malformed[bot_id]),
            malformed_trimmed=self._trimmed["malformed", bot_id],
            outbox=sum(row.bot_id == bot_id for row in self._outbox),
        )

    # upkeep

    async def sweep(self) -> None:
        old = self._now() - self._limits.seen_for
        expired = [known for known, seen in self._seen.items() if seen < old]
        for bot_id in {known[0] for known in expired}:
            here = {update.update_id for update in self._lanes.waiting(BotId(bot_id))}
            here |= {failed.update_id for failed in self._failed[BotId(bot_id)]}
            for known in expired:
                if known[0] == bot_id and known[1] not in here:
                    del self._seen[known]
                    self._bodies[known[:2]] -= 1


class MemoryRenewer:
    def __init__(self, lanes: Lanes, guard: threading.Lock) -> None:
        self._lanes = lanes
        self._guard = guard

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        with self._guard:
            return self._lanes.renew(tokens)

    def close(self) -> None: ...


def _age(failed: FailedUpdate) -> tuple[datetime, RowId]:
    return failed.failed_at, failed.row
