"""A server that takes a connection and never says a word, as after a failover that nobody was told of."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import Token
from pillarbox.inbox.connections import DEADLINE
from pillarbox.inbox.hold import Hold
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from tests.support.inbox import BOT, incoming

Call = Callable[[PostgresStorage], Awaitable[object]]


@pytest.fixture
def silent_url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"postgresql://postgres@127.0.0.1:{server.getsockname()[1]}/x"


async def file(rows: Sequence[object]) -> None: ...


async def work(hold: Hold) -> None: ...


async def alone(inbox: PostgresStorage) -> None:
    async with inbox.alone("x"):
        pass


async def renew(inbox: PostgresStorage) -> None:
    await asyncio.to_thread(inbox.renewer().renew, [Token(1)])


CALLS: dict[str, Call] = {
    "open": lambda inbox: inbox.open(),
    "ping": lambda inbox: inbox.ping(),
    "accept": lambda inbox: inbox.accept([incoming(1)]),
    "turn": lambda inbox: inbox.turn([], 1),
    "relay": lambda inbox: inbox.relay(file, 10),
    "requeue": lambda inbox: inbox.requeue(BOT, None, "tests"),
    "sweep": lambda inbox: inbox.sweep(),
    "alone": alone,
    "while alone": lambda inbox: inbox.while_alone("x", work),
    "renew": renew,
}


async def test_every_call_ends_within_its_deadline(silent_url: str) -> None:
    inbox = PostgresStorage(load(InboxSettings, database_url=silent_url))
    began = time.monotonic()
    async with asyncio.timeout(4 * DEADLINE):
        answers = await asyncio.gather(*(call(inbox) for call in CALLS.values()), return_exceptions=True)
    await inbox.close()
    found = {name: type(answer) for name, answer in zip(CALLS, answers, strict=True)}
    assert found == dict.fromkeys(CALLS, StorageUnavailable)
    assert time.monotonic() - began < 2 * DEADLINE
