"""What a case is given: a way to make the storage, and words to say what happens to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox.states import End, Finished, Incoming, Lease, Limits, OutboxRow, Turn
from pillarbox.inbox.storage import Storage

Make = Callable[[Limits], Storage]
Needs = Literal["durable", "one process"]

BOT = BotId(42)
OTHER = BotId(43)
SHORT = 0.5
"""Seconds of a lease that a case lets run out."""
PATIENCE = 10.0


@dataclass
class Given:
    """Makes storages on the same data; closes them at the end."""

    make: Make
    limits: Limits = field(default_factory=Limits)
    opened: list[Storage] = field(default_factory=list)

    async def storage(self, *bots: BotId, **limits: float) -> Storage:
        """Opened, with the right to handle BOT and OTHER, or `bots`."""
        self.limits = replace(self.limits, **limits)  # type: ignore[arg-type]
        storage = await self.unlocked()
        assert await storage.try_lock(bots or (BOT, OTHER))
        return storage

    async def unlocked(self) -> Storage:
        storage = self.make(self.limits)
        await storage.open()
        self.opened.append(storage)
        return storage

    async def reopened(self, storage: Storage) -> Storage:
        """As after a clean end of the process and a new start."""
        await storage.close()
        self.opened.remove(storage)
        return await self.storage()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for storage in self.opened:
            await storage.close()


Run = Callable[[Given], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """`rule`: of the inbox's rules in the design. `needs`: what a storage must be for it to apply."""

    rule: int
    run: Run
    needs: tuple[Needs, ...]

    @property
    def name(self) -> str:
        return f"{self.rule:02}-{self.run.__name__}"

    def applies(self, storage: Storage) -> bool:
        has = {"durable": storage.durable, "one process": storage.durable and not storage.shared}
        return all(has[need] for need in self.needs)


CASES: list[Case] = []


def case(rule: int, *needs: Needs) -> Callable[[Run], Run]:
    def added(run: Run) -> Run:
        CASES.append(Case(rule, run, needs))
        return run

    return added


def update(n: int, chat: int = 1, body: bytes | None = None, *, bot: BotId = BOT) -> Incoming:
    return Incoming(
        bot_id=bot,
        update_id=UpdateId(n),
        kind="message",
        lane=f"chat:{chat}",
        body=b'{"update_id":%d}' % n if body is None else body,
        chat_id=chat,
        user_id=chat,
    )


def sealed(n: int, chat: int = 1) -> Incoming:
    return replace(update(n, chat), sealed=True)


def ids(leases: Sequence[Lease]) -> list[int]:
    return [lease.update_id for lease in leases]


async def claimed(storage: Storage, slots: int = 1, *, suspects: bool = False) -> list[Lease]:
    """Claims until something comes: what only the database's clock brings back takes a moment."""
    async with asyncio.timeout(PATIENCE):
        while True:
            turn = await storage.turn((), slots, suspects=suspects)
            if turn.leases:
                return turn.leases
            await asyncio.sleep(0.05)


async def failed(storage: Storage, *updates: Incoming, error: str = "KeyError: 'city' at bot.py:31") -> None:
    """Accepts and fails them; their lanes must be free."""
    await storage.accept(updates)
    while leases := await storage.claim(64):
        for lease in leases:
            assert await storage.fail(lease.token, error)


async def drained(storage: Storage, slots: int = 16) -> list[Lease]:
    """All that is pending, in the order in which it ran; every one finished."""
    ran: list[Lease] = []
    ends: list[End] = []
    while True:
        turn = await storage.turn(ends, slots)
        assert not turn.lost
        if not turn.leases:
            return ran
        ran += turn.leases
        ends = [Finished(lease.token) for lease in turn.leases]


async def crashed(storage: Storage, times: int) -> Turn:
    """The only lane's holder vanishes that many times; what the last turn saw."""
    for run in range(1, times + 1):
        (lease,) = await claimed(storage, suspects=True)
        assert lease.run == run
    async with asyncio.timeout(PATIENCE):
        while True:
            await asyncio.sleep(0.1)
            turn = await storage.turn((), 0)
            if turn.suspects or turn.failed:
                return turn


class Filed:
    """A queue that takes each row once, as the outbound lanes do."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []
        self.calls = 0

    async def file(self, rows: Sequence[OutboxRow]) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        known = {row.id for row in self.rows}
        self.rows += [row for row in rows if row.id not in known]

    @property
    def bodies(self) -> list[bytes]:
        return [row.body for row in self.rows]
