"""Hints end the wait of a dispatcher; lost ones cost the length of a poll."""

import asyncio

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
