"""What every storage of updates promises, and `pillarbox.inbox.contract` proves.

`pillarbox.inbox.postgres` is the one that runs for real; `sqlite` is for one machine, `memory` for tests.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Protocol, Self

from pillarbox.errors import PollingConflictError
from pillarbox.ids import BotId, Token
from pillarbox.inbox.filtering import Filter, Progress, Which, unheard
from pillarbox.inbox.hold import Hold, Work
from pillarbox.inbox.states import (
    Accepted,
    Audited,
    Counts,
    End,
    Failed,
    FailedUpdate,
    Finished,
    FsmKey,
    FsmValue,
    FsmWrite,
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
    Turn,
    Uncounted,
)

Filer = Callable[[Sequence[OutboxRow]], Awaitable[None]]


class Renewer(Protocol):
    """Renews leases from another thread, by its own connection, while the event loop may be blocked."""

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        """Prolongs each lease to a full LEASE from now; returns the tokens that are no longer held.

        Raises StorageUnavailable when it is unknown; the caller then counts from its last success. Where that
        is so for some of them only, LeasesLocked names those; the others are renewed, or lost.
        """

    def close(self) -> None: ...


class Storage(ABC):
    """The inbox. Every method may raise StorageUnavailable; the same call may then be repeated."""

    durable: ClassVar[bool] = False
    """True only if `accept` has saved the updates for good when it returns."""

    shared: ClassVar[bool] = False
    """True only if several processes may handle the updates of one bot at the same time."""

    @classmethod
    @abstractmethod
    def from_url(cls, url: str, limits: Limits) -> Self:
        """How STORAGE=package.module:Class is made of DATABASE_URL; raises SettingError. Opens nothing."""

    @abstractmethod
    async def open(self) -> None:
        """Connects, and refuses with SettingError a database that is of another version or not durable."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def ping(self) -> None:
        """Returns when the database answers a query now; for readiness."""

    @abstractmethod
    async def try_lock(self, bot_ids: Sequence[BotId]) -> bool:
        """The right to receive and handle these bots' updates; who does either asks for it after `open`.

        False: another process has one of these bots, and none of them was locked. `close`, and the end of
        the process however it comes, give the right back. True for bots that this object has already, and
        always where `shared`. `turn` and `relay` are about the bots that are locked, and no others.
        """

    async def lock(self, bot_ids: Sequence[BotId]) -> None:
        """`try_lock`, or PollingConflictError, which names the other process where that is known."""
        if not await self.try_lock(bot_ids):
            raise PollingConflictError(
                "another process receives and handles this bot's updates; stop one of them"
            )

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncIterator[bool]:
        """Whether this process alone holds `name` now; given back at the end, or when the process dies."""
        yield True  # not `shared`: there is no other process

    async def while_alone(self, name: str, work: Work) -> None:
        """Waits until this process alone holds `name`, runs `work` to its end, and gives `name` back.

        Raises StorageUnavailable, with `work` cancelled, before another process can hold it.
        """
        await work(Hold(math.inf, 0.0))  # not `shared`: `try_lock` has told the others

    # ingest

    @abstractmethod
    async def accept(self, updates: Sequence[Incoming]) -> list[Accepted]:
        """Stores all of them for good, in this order inside each lane, and says for each what it was.

        An update that the database refuses is answered with `Accepted.REFUSED` and does not harm the others.
        """

    @abstractmethod
    async def malformed(self, body: Malformed) -> None:
        """Keeps a body that no update could be read from, in a list that holds the newest."""

    # dispatcher

    @abstractmethod
    async def turn(
        self, ends: Sequence[End], slots: int, *, suspects: bool = False, fsm: bool = False
    ) -> Turn:
        """One transaction: ends these runs, and leases up to `slots` updates to run next.

        `slots` is what may start after these ends. A lane whose update finished and that has more goes on
        with its next one, before other lanes are asked, but not for ever while others wait. With `suspects`
        (only where nothing else runs, nor will until this one ended) the answer may be one suspect alone.
        The run of each lease is counted when this returns. Ends whose token is no longer held change nothing
        and are named in `Turn.lost`. Updates that ran too often without an end go to the failed list here.

        Of a `Finished`, outbox and FSM are written with it, or nothing is: it is in `Turn.stale` then.
        With `fsm` each lease brings the FSM value that is named like its lane, as it is after these ends.
        """

    async def claim(self, slots: int) -> list[Lease]:
        return (await self.turn((), slots)).leases

    async def finish(self, token: Token, outbox: Sequence[bytes] = (), fsm: Sequence[FsmWrite] = ()) -> bool:
        """Done and gone; its outbox and FSM state are kept in the same transaction.

        False: the lease was lost, or it runs again because another has written its FSM state.
        """
        return await self._end(Finished(token, tuple(outbox), tuple(fsm)))

    async def fail(self, token: Token, error: str) -> bool:
        """To the failed list, with the error's type, message and place; of a sealed update's error the type
        and the place alone. False: the lease was lost."""
        return await self._end(Failed(token, error))

    async def release(self, token: Token) -> bool:
        """Given back, the run not counted. False: the lease was lost."""
        return await self._end(Released(token))

    async def later(self, token: Token, after: float) -> bool:
        """Run again in `after` seconds, not counted; its lane waits. False: the lease was lost."""
        return await self._end(Later(token, after))

    async def uncount(self, token: Token) -> bool:
        """The run is given back and its lease kept: a stop has begun. False: the lease was lost."""
        return await self._end(Uncounted(token))

    async def _end(self, end: End) -> bool:
        turn = await self.turn([end], 0)
        return not turn.lost and not turn.stale

    @abstractmethod
    async def read_fsm(self, keys: Sequence[FsmKey]) -> list[FsmValue]:
        """What is kept under each of these keys, in their order."""

    @abstractmethod
    async def write_fsm(self, writes: Sequence[FsmWrite]) -> bool:
        """Outside of a run: all of them at once, or none. False: one was written since it was read."""

    @abstractmethod
    def renewer(self) -> Renewer:
        """For the watchdog's thread; blocking, with a connection of its own."""

    @abstractmethod
    async def wait(self, timeout: float) -> None:
        """Returns when updates may have come, after `timeout` seconds at the latest. A hint only."""

    @abstractmethod
    async def relay(self, file: Filer, limit: int) -> int:
        """Hands the oldest `limit` outbox rows to `file`, in order inside a lane, then forgets them. So many
        bytes at once: `file` is called again where there are more (`handing` has the words for it).

        Rows of one lane are never with two callers at a time. When `file` raises, or the process dies, they
        are handed out again: `file` must take a row that it already has. Returns how many were handed out.
        """

    # admin

    @abstractmethod
    async def requeue(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        """Failed updates back to the end of their lanes, with no run counted; in batches, each atomic.

        The audit keeps which, and `by` whom, in the same transaction. What fails meanwhile is not touched.
        """

    @abstractmethod
    async def discard(self, bot_id: BotId, which: Which, by: str, *, progress: Progress = unheard) -> Moved:
        """Forgets failed updates, in batches; the audit keeps which, and `by` whom."""

    @abstractmethod
    async def failed_updates(
        self,
        bot_id: BotId,
        *,
        before: FailedUpdate | Place | None = None,
        limit: int = 100,
        matching: Filter | None = None,
    ) -> list[FailedUpdate]:
        """The newest failures first; `before`: what follows this one in the list."""

    @abstractmethod
    async def audit(self, bot_id: BotId, *, limit: int = 100) -> list[Audited]:
        """What people did with failed updates and pins, the newest first."""

    @abstractmethod
    async def counts(self, bot_id: BotId) -> Counts: ...

    async def knows(self, bot_id: BotId) -> bool:
        """Whether anything was ever stored of this bot; True too where that is not kept."""
        return True

    # pins: the key that is trusted for a person. All four take 40 or 64 hexadecimal digits, and give them
    # in upper case; FingerprintRefused otherwise. Every change is audited, with `by`, old and new key.

    @abstractmethod
    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None: ...

    @abstractmethod
    async def pin(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        """Pins the first key that is seen; answers the pinned one, whoever came first."""

    @abstractmethod
    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        """Pins this key, in the place of whichever was pinned."""

    @abstractmethod
    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        """The next key that is seen will be pinned. Answers the pin that is gone, None where none was."""

    # upkeep

    @abstractmethod
    async def sweep(self) -> None:
        """Forgets, in small batches, what is past its time: `seen` past SEEN_FOR, lists past their caps."""
