"""Hints end the wait of a dispatcher; lost ones cost the length of a poll."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from pillarbox.errors import StorageLocked, StorageRefused
from pillarbox.inbox import Accepted, sql
from pillarbox.inbox.connections import Pool
from tests.support.inbox import incoming, opened, query


async def test_a_hint_ends_the_wait(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await other.wait(5)  # a new listener says: look
        waiting = asyncio.create_task(other.wait(20))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await inbox.accept([incoming(1)])
        async with asyncio.timeout(5):
            await waiting
        await other.wait(0.1)


async def test_a_hint_comes_with_a_lone_accept_and_of_others_soon(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await inbox.accept([incoming(0)])
        await other.wait(5)
        await other.wait(0.2)
        for number in range(1, 5):
            await asyncio.sleep(0.05 * (number % 2))
            waiting = asyncio.create_task(other.wait(20))
            await asyncio.sleep(0)
            await inbox.accept([incoming(number)])
            async with asyncio.timeout(5):
                await waiting


async def test_hints_come_again_after_the_listener_was_ended(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await other.wait(5)
        ended = query(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'",
        )
        assert ended == [(True,)]
        await other.wait(5)  # a new listener says: look
        waiting = asyncio.create_task(other.wait(20))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await inbox.accept([incoming(1)])
        async with asyncio.timeout(5):
            await waiting


async def test_what_is_stored_beside_a_locked_lane_is_hinted(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await inbox.accept([incoming(1, lane="chat:1")])
        await other.wait(5)
        await other.wait(0.2)
        waiting = asyncio.create_task(other.wait(20))
        with psycopg.connect(postgres_url) as stranger:
            stranger.execute(b"SELECT 1 FROM lanes FOR UPDATE")
            with pytest.raises(StorageLocked):
                await inbox.accept([incoming(2, lane="chat:1"), incoming(3, lane="chat:3")])
        async with asyncio.timeout(5):
            await waiting


class FullQueue:
    """A database whose queue of hints is full for a while: it refuses each commit that notifies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
        self.full = True
        self._execute = pool.execute
        monkeypatch.setattr(pool, "execute", self.execute)

    async def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        if self.full and (query == sql.NOTIFY or (query == sql.ACCEPT and parameters[8])):
            raise StorageRefused("the database refused the data (ProgramLimitExceeded 54000)")
        return await self._execute(query, parameters)


async def test_a_full_queue_of_hints_refuses_no_update_and_ends_nothing(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await other.wait(5)
        await other.wait(0.2)
        queue = FullQueue(monkeypatch, inbox._pool)
        assert await inbox.accept([incoming(1)]) == [Accepted.NEW]
        await asyncio.sleep(0.1)
        queue.full = False
        waiting = asyncio.create_task(other.wait(20))
        await inbox.accept([incoming(2)])
        async with asyncio.timeout(5):
            await waiting
        queue.full = True
        await inbox.accept([incoming(3)])
        await asyncio.sleep(0.1)


async def test_an_update_that_its_hint_held_up_is_hinted_later(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await other.wait(5)
        await other.wait(0.2)
        waiting = asyncio.create_task(other.wait(20))
        queue = FullQueue(monkeypatch, inbox._pool)
        accepting = asyncio.create_task(inbox.accept([incoming(1)]))
        await asyncio.sleep(0)
        queue.full = False
        assert await accepting == [Accepted.NEW]
        async with asyncio.timeout(5):
            await waiting


async def test_who_stops_hints_at_what_is_left_also_with_its_last_turn(postgres_url: str) -> None:
    async with opened(postgres_url) as other:
        async with opened(postgres_url) as inbox:
            await inbox.accept([incoming(1), incoming(2)])
            (lease,) = await inbox.claim(8)
            await other.wait(5)
            await other.wait(0.2)
            waiting = asyncio.create_task(other.wait(20))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await inbox.finish(lease.token)
        async with asyncio.timeout(5):
            await waiting
