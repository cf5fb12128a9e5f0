"""A name that one process holds: who waits gets it, and who lost it has stopped before."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest

from pillarbox.errors import StorageUnavailable
from pillarbox.inbox.hold import Hold
from pillarbox.inbox.holding import while_alone
from tests.support.inbox import query

OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
"""


class Worker:
    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.over = asyncio.Event()
        self.cancelled = False

    async def __call__(self, hold: Hold) -> None:
        assert hold.held
        self.began.set()
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_one_works_the_next_follows_and_another_name_is_free(postgres_url: str) -> None:
    first, second, other = Worker(), Worker(), Worker()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(while_alone(postgres_url, "bot", first))
        await first.began.wait()
        group.create_task(while_alone(postgres_url, "bot", second))
        group.create_task(while_alone(postgres_url, "another", other))
        await other.began.wait()
        await asyncio.sleep(1)
        assert not second.began.is_set()
        first.over.set()
        await second.began.wait()
        second.over.set()
        other.over.set()


async def test_an_ended_connection_ends_the_work(postgres_url: str) -> None:
    worker = Worker()
    task = asyncio.create_task(while_alone(postgres_url, "bot", worker))
    await worker.began.wait()
    await asyncio.to_thread(query, postgres_url, OTHERS)
    with pytest.raises(StorageUnavailable):
        await asyncio.wait_for(task, 5)
    assert worker.cancelled


def test_a_silent_holder_knows_before_the_next_one_begins(postgres_url: str) -> None:
    """The work blocks its event loop, as a process that hangs; the next one has a thread of its own."""
    silence = 1.0
    taken = threading.Event()
    first: list[Hold] = []
    held: list[bool] = []

    async def hanging(hold: Hold) -> None:
        first.append(hold)
        held.append(hold.held)
        waiting.start()
        while not taken.is_set():
            time.sleep(0.02)  # noqa: ASYNC251 - that is the point

    async def next_one(_: Hold) -> None:
        held.append(first[0].held)
        taken.set()

    waiting = threading.Thread(
        target=lambda: asyncio.run(while_alone(postgres_url, "bot", next_one, silence)), daemon=True
    )
    with suppress(StorageUnavailable):
        asyncio.run(while_alone(postgres_url, "bot", hanging, silence))
    waiting.join(20)
    assert held == [True, False]
