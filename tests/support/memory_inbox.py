"""A small inbox in memory, for unit tests of what stands on the Storage interface."""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox import (
    Accepted,
    Audited,
    Counts,
    End,
    Failed,
    FailedUpdate,
    Filter,
    Finished,
    Incoming,
    Later,
    Lease,
    Limits,
    Malformed,
    Moved,
    OutboxRow,
    Pin,
    Place,
    Released,
    Renewer,
    Storage,
    Turn,
    Which,
)
from pillarbox.inbox.storage import Filer


class MemoryInbox(Storage):
    """Lanes in order, leases that end when a test takes them away, and an outage that it switches on."""

    def __init__(self) -> None:
        self.lanes: dict[str, deque[Lease]] = {}
        self.held: dict[Token, Lease] = {}
        self.ends: list[End] = []
        self.outbox: list[OutboxRow] = []
        self.away = False
        self.turns = 0
        self.runs: dict[RowId, int] = {}
        self._numbers = itertools.count(1)
        self._came = asyncio.Event()

    def put(
        self, lane: str, body: bytes = b"{}", *, bot_id: int = 42, accepted_at: datetime | None = None
    ) -> RowId:
        row = RowId(next(self._numbers))
        lease = Lease(
            Token(0),
            row,
            BotId(bot_id),
            lane,
            UpdateId(row),
            "message",
            body,
            0,
            accepted_at or datetime.now(UTC),
        )
        self.lanes.setdefault(lane, deque()).append(lease)
        self._came.set()
        return row

    def take_away(self, token: Token) -> None:
        """As when the lease ended and another dispatcher has the lane now."""
        self.held.pop(token)

    @property
    def is_empty(self) -> bool:
        return not any(self.lanes.values())

    @classmethod
    def from_url(cls, url: str, limits: Limits) -> Self:
        return cls()

    async def try_lock(self, bot_ids: Sequence[BotId]) -> bool:
        return True

    async def failed_updates(
        self,
        bot_id: BotId,
        *,
        before: FailedUpdate | Place | None = None,
        limit: int = 100,
        matching: Filter | None = None,
    ) -> list[FailedUpdate]:
        raise NotImplementedError

    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        raise NotImplementedError

    async def counts(self, bot_id: BotId) -> Counts:
        raise NotImplementedError

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ping(self) -> None: ...

    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        raise NotImplementedError

    async def malformed(self, body: Malformed) -> None:
        raise NotImplementedError

    async def turn(self, ends: Sequence[End], slots: int, *, suspects: bool = False) -> Turn:
        await asyncio.sleep(0)
        if self.away:
            raise StorageUnavailable("switched off")
        self.turns += 1
        lost = frozenset(end.token for end in ends if not self._ended(end))
        return Turn(self._claim(slots), lost)

    def _ended(self, end: End) -> bool:
        lease = self.held.pop(end.token, None)
        if lease is None:
            return False
        self.ends.append(end)
        match end:
            case Finished(outbox=elements):
                self.lanes[lease.lane].popleft()
                self.outbox += [
                    OutboxRow(lease.bot_id, lease.lane, lease.row, n, body) for n, body in enumerate(elements)
                ]
            case Failed():
                self.lanes[lease.lane].popleft()
            case Released() | Later():
                self.runs[lease.row] -= 1
        return True

    def _claim(self, slots: int) -> list[Lease]:
        busy = {lease.lane for lease in self.held.values()}
        free = [queue[0] for lane, queue in self.lanes.items() if queue and lane not in busy]
        return [self._lease(waiting) for waiting in free[:slots]]

    def _lease(self, waiting: Lease) -> Lease:
        run = self.runs[waiting.row] = self.runs.get(waiting.row, 0) + 1
        lease = Lease(
            Token(next(self._numbers)),
            waiting.row,
            waiting.bot_id,
            waiting.lane,
            waiting.update_id,
            waiting.kind,
            waiting.body,
            run,
            waiting.accepted_at,
        )
        self.held[lease.token] = lease
        return lease

    def renewer(self) -> Renewer:
        return _Renewer(self)

    async def wait(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._came.wait()
        except TimeoutError:
            return
        self._came.clear()

    async def relay(self, file: Filer, limit: int) -> int:
        rows = self.outbox[:limit]
        if rows:
            await file(rows)
        del self.outbox[: len(rows)]
        return len(rows)

    async def requeue(self, bot_id: BotId, which: Which, by: str) -> Moved:
        raise NotImplementedError

    async def discard(self, bot_id: BotId, which: Which, by: str) -> Moved:
        raise NotImplementedError

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        raise NotImplementedError

    async def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        raise NotImplementedError

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        raise NotImplementedError

    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        raise NotImplementedError

    async def sweep(self) -> None: ...


class _Renewer:
    def __init__(self, inbox: MemoryInbox) -> None:
        self._inbox = inbox

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        if self._inbox.away:
            raise StorageUnavailable("switched off")
        return frozenset(token for token in tokens if token not in self._inbox.held)

    def close(self) -> None: ...
