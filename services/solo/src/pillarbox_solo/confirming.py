"""When Telegram may be told, where a crash would lose what was accepted: after the handlers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox import (
    Accepted,
    End,
    Failed,
    Finished,
    FsmKey,
    FsmValue,
    FsmWrite,
    Incoming,
    Later,
    Lease,
    OutboxRow,
    Renewer,
    Retried,
    Storage,
    Turn,
    Uncounted,
)
from pillarbox.inbox.storage import Filer
from pillarbox_ingest.webhook import Put

PATIENCE = 55.0  # Telegram waits 60 s for the webhook's answer
MOST_FAILED = 100

Key = tuple[BotId, UpdateId, bytes]


@dataclass(slots=True)
class _Leaving:
    """The outbox of an update: how many messages it has, once its end is written, and which are relayed."""

    key: Key | None = None
    messages: int = 0
    relayed: set[int] = field(default_factory=set)

    @property
    def done(self) -> bool:
        return self.key is not None and len(self.relayed) >= self.messages


class Confirming:
    """Stands between a storage that is not durable, ingest and the dispatcher.

    `confirm` makes ingest wait until the update has failed, or finished with its outbox relayed: one update
    at a time, but for those that asked for a later run. Past `patience` it raises StorageUnavailable; a
    repeat joins the run.
    """

    def __init__(self, storage: Storage, patience: float = PATIENCE) -> None:
        self._storage = storage
        self._patience = patience
        self._one = asyncio.Semaphore(1)
        self._running: Key | None = None
        self._closed = False
        self._over: dict[Key, asyncio.Future[None]] = {}
        self._leases: dict[Token, Lease] = {}
        self._leaving: dict[RowId, _Leaving] = {}

    # ingest

    def confirm(self, put: Put) -> Put:
        async def confirmed(update: Incoming) -> Accepted:
            until = asyncio.get_running_loop().time() + self._patience
            try:
                return await self._confirmed(put, update, until)
            except TimeoutError:
                raise StorageUnavailable("its handlers have not ended yet") from None

        return confirmed

    async def _confirmed(self, put: Put, update: Incoming, until: float) -> Accepted:
        key = (update.bot_id, update.update_id, update.body)
        if key not in self._over:
            async with asyncio.timeout_at(until):
                await self._one.acquire()
            if self._closed:
                self._one.release()  # to the next who waits
                raise StorageUnavailable("the process stops")
            if key not in self._over:
                return await self._start(put, update, key, until)
            self._one.release()
        async with asyncio.timeout_at(until):
            await asyncio.shield(self._over[key])
        return Accepted.REPEAT

    async def _start(self, put: Put, update: Incoming, key: Key, until: float) -> Accepted:
        over = self._over[key] = asyncio.get_running_loop().create_future()
        self._running = key
        try:
            answer = await put(update)
        except BaseException:
            self._end(key)
            raise
        if answer not in (Accepted.NEW, Accepted.NEW_BODY):
            self._end(key)
            return answer
        async with asyncio.timeout_at(until):
            await asyncio.shield(over)
        return answer

    def refuse(self) -> None:
        """Nothing begins any more: who waits for its turn is told to come again."""
        self._closed = True
        if self._running is None:
            return
        self._running = None
        self._one.release()

    def close(self) -> None:
        """Nothing ends any more: whoever waits is told to come again."""
        for over in self._over.values():
            if not over.done():
                over.set_exception(StorageUnavailable("the process stops"))
                over.exception()  # perhaps nobody waits for it

    # the dispatcher

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        turn = await self._storage.turn(ends, slots, suspects=suspects, fsm=fsm)
        for end in ends:
            if isinstance(end, Uncounted):
                continue
            lease = self._leases.pop(end.token, None)
            if lease is not None and end.token not in turn.lost | turn.stale:
                self._note(lease, end)
        self._leases.update({lease.token: lease for lease in turn.leases})
        if turn.failed:
            await self._find_failed()
        return turn

    def _note(self, lease: Lease, end: End) -> None:
        key = (lease.bot_id, lease.update_id, lease.body)
        match end:
            case Finished(outbox=elements):
                leaving = self._leaving.setdefault(lease.row, _Leaving())
                leaving.key, leaving.messages = key, len(elements)
                self._settle(lease.row)
            case Failed():
                self._end(key)
            case Later() | Retried():
                self._let_next(key)

    async def _find_failed(self) -> None:
        """Those that the storage failed by itself."""
        for bot_id in {key[0] for key in self._over}:
            for failed in await self._storage.failed_updates(bot_id, limit=MOST_FAILED):
                self._end((failed.bot_id, failed.update_id, failed.body))

    def renewer(self) -> Renewer:
        return self._storage.renewer()

    async def wait(self, timeout: float) -> None:
        await self._storage.wait(timeout)

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        return await self._storage.read_fsm(keys)

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool:
        return await self._storage.write_fsm(writes)

    async def relay(self, file: Filer, limit: int) -> int:
        filed: list[OutboxRow] = []

        async def noted(rows: Sequence[OutboxRow]) -> None:
            await file(rows)
            filed.extend(rows)

        count = await self._storage.relay(noted, limit)
        for row in filed:
            self._leaving.setdefault(row.row, _Leaving()).relayed.add(row.n)
            self._settle(row.row)
        return count

    def _settle(self, row: RowId) -> None:
        leaving = self._leaving[row]
        if leaving.done and leaving.key is not None:
            del self._leaving[row]
            self._end(leaving.key)

    def _end(self, key: Key) -> None:
        over = self._over.pop(key, None)
        if over is not None and not over.done():
            over.set_result(None)
        self._let_next(key)

    def _let_next(self, key: Key) -> None:
        if self._running == key:
            self._running = None
            self._one.release()
