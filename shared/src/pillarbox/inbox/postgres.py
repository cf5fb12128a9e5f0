"""The inbox on PostgreSQL, 15 and newer."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import ClassVar, Self

from pillarbox.db.version import check_revision
from pillarbox.errors import SettingError
from pillarbox.ids import BotId
from pillarbox.inbox import accepting, failures, pinning, reading, relaying, sql, sweeping
from pillarbox.inbox import fsm as states
from pillarbox.inbox.arrays import Int8s
from pillarbox.inbox.connections import Pool, connect_directly, deadline
from pillarbox.inbox.filtering import Filter, Progress, Which, unheard
from pillarbox.inbox.hints import Hinter, Listener
from pillarbox.inbox.hold import Work
from pillarbox.inbox.holding import while_alone
from pillarbox.inbox.renewing import PostgresRenewer
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
    Limits,
    Malformed,
    Moved,
    Pin,
    Place,
    Released,
    Turn,
)
from pillarbox.inbox.storage import Filer, Storage
from pillarbox.inbox.turning import Turns
from pillarbox.settings import InboxSettings, load

CONNECTIONS = 5
RELAYS = 2


class PostgresStorage(Storage):
    """Each call takes 5 s at most (`relay` without its `file`), and finds its way back after a restart."""

    durable: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    def __init__(self, settings: InboxSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        url = settings.database_url.get_secret_value()
        self._url = url
        self._pool = Pool(url, CONNECTIONS)
        self._relays = Pool(url, RELAYS)
        self._turns = Turns(self._pool, settings, clock)
        self._hinter = Hinter(self._pool)
        self._listener = Listener(settings.direct_url)

    @classmethod
    def from_url(cls, url: str, limits: Limits) -> Self:
        return cls(load(InboxSettings, database_url=url, **asdict(limits)))

    async def open(self) -> None:
        ((fsync, full_page_writes, synchronous_commit, migrated),) = await self._pool.execute(sql.CHECK)
        found = {
            "fsync": fsync,
            "full_page_writes": full_page_writes,
            "synchronous_commit": synchronous_commit,
        }
        if not self._settings.allow_unsafe_durability:
            _check_durable(found)
        revision = await self._pool.execute(sql.REVISION) if migrated else []
        check_revision(revision[0][0] if revision else None)

    async def close(self) -> None:
        await self._listener.close()
        await self._hinter.close()
        await self._relays.close()
        await self._pool.close()

    async def ping(self) -> None:
        await self._pool.execute(sql.PING)

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncIterator[bool]:
        """Whether this process alone holds `name` now; given back at the end, or when the process dies."""
        async with deadline():
            link = await connect_directly(self._settings.direct_url)
        try:
            async with deadline():
                ((ours,),) = await link.asking.ask(sql.TRY_LOCK, [name])
            yield ours
        finally:
            link.pgconn.finish()

    async def while_alone(self, name: str, work: Work) -> None:
        """A process that dies loses `name` at once; one that falls silent, or is cut off, within 3 s."""
        await while_alone(self._settings.direct_url, name, work)

    async def try_lock(self, bot_ids: Sequence[BotId]) -> bool:
        """Lanes are leased one by one, so that dispatchers share them."""
        await self._pool.execute(sql.BOT_KNOWN, [Int8s(sorted(bot_ids))])
        return True

    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        with self._hinter.riding() as rides:
            return await accepting.accept(self._pool, updates, self._hinter.hint, rides=rides)

    async def malformed(self, body: Malformed) -> None:
        await self._pool.execute(sql.MALFORMED, [body.bot_id, body.reason, body.body])
        await self._pool.execute(sql.MALFORMED_TRIM, [body.bot_id, self._settings.max_malformed])

    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        turn = await self._turns.turn(ends, slots, suspects, fsm)
        if any(isinstance(end, Released) for end in ends) or (ends and not slots):
            self._hinter.hint()  # what waits in these lanes is for others
        return turn

    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        return await states.read(self._pool, keys)

    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool:
        return await states.write(self._pool, writes)

    def renewer(self) -> PostgresRenewer:
        return PostgresRenewer(self._settings.direct_url, self._settings.lease)

    async def wait(self, timeout: float) -> None:
        await self._listener.wait(timeout)

    async def relay(self, file: Filer, limit: int) -> int:
        return await relaying.relay(self._relays, file, limit)

    async def requeue(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        moved = await failures.requeue(self._pool, bot_id, which, by, progress)
        if moved.moved:
            self._hinter.hint()
        return moved

    async def discard(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        return await failures.discard(self._pool, bot_id, which, by, progress)

    async def failed_updates(
        self,
        bot_id: BotId,
        *,
        before: FailedUpdate | Place | None = None,
        limit: int = 100,
        matching: Filter | None = None,
    ) -> list[FailedUpdate]:
        return await reading.failed_updates(self._pool, bot_id, before, limit, matching)

    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        return await reading.audit(self._pool, bot_id, limit)

    async def counts(self, bot_id: BotId) -> Counts:
        return await reading.counts(self._pool, bot_id)

    async def knows(self, bot_id: BotId) -> bool:
        return await reading.knows(self._pool, bot_id)

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return await pinning.pinned(self._pool, bot_id, user_id)

    async def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        return await pinning.pin(self._pool, bot_id, user_id, fingerprint, by)

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        return await pinning.trust(self._pool, bot_id, user_id, fingerprint, by)

    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        return await pinning.forget(self._pool, bot_id, user_id, by)

    async def sweep(self) -> None:
        await sweeping.sweep(self._pool, self._settings.seen_for, self._settings.max_failed)


def _check_durable(found: dict[str, str]) -> None:
    off = [name for name, value in found.items() if value == "off"]
    if off:
        raise SettingError(
            f"DATABASE_URL: this PostgreSQL may lose what it confirmed ({', '.join(off)} off); "
            "turn it on, or set ALLOW_UNSAFE_DURABILITY=true"
        )
