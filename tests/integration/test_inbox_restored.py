"""A database that was restored from a backup, beside a Redis that goes on: no number is given out twice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from pillarbox.inbox import Failed, Finished, FsmKey, FsmWrite
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.outbound.connection import connect
from pillarbox.outbound.lanes import Lanes
from pillarbox.settings import RedisSettings
from pillarbox_dispatcher.relay import Relay
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox import BOT, incoming, opened, query

Restore = Callable[[], Awaitable[None]]
CALL = b'{"method":"sendMessage","params":{"chat_id":%d,"text":"x"}}'


def copy(server: PostgresServer, database: str, source: str) -> None:
    """As a backup's files do: sequences, too, are as they were."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{source}"'.encode())


@pytest.fixture
def restore(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Restore]:
    """The backup is of the moment of the fixture: a database that was migrated and nothing else."""
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]

    async def restored() -> None:
        await asyncio.sleep(0.2)  # a restore takes longer
        copy(postgres_server, name, "test_backup")

    copy(postgres_server, "test_backup", name)
    yield restored
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(b"DROP DATABASE IF EXISTS test_backup WITH (FORCE)")


async def answer(inbox: PostgresStorage, numbers: range) -> None:
    await inbox.accept([incoming(n, lane=f"chat:{n}") for n in numbers])
    leases = await inbox.claim(len(numbers))
    await inbox.turn([Finished(lease.token, (CALL % lease.update_id,)) for lease in leases], 0)


async def test_answers_after_a_restore_are_sent(
    postgres_server: PostgresServer, postgres_url: str, valkey_url: str
) -> None:
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]
    redis = connect(RedisSettings(redis_url=valkey_url))
    lanes = Lanes(redis, "q")
    try:
        async with opened(postgres_url) as inbox:
            await answer(inbox, range(10))
            await Relay(inbox, lanes).drain()
        copy(postgres_server, "test_backup", name)
        async with opened(postgres_url) as inbox:
            await answer(inbox, range(10, 30))
            await Relay(inbox, lanes).drain()
        await asyncio.sleep(0.2)
        copy(postgres_server, name, "test_backup")
        async with opened(postgres_url) as inbox:
            await answer(inbox, range(30, 60))
            await Relay(inbox, lanes).drain()
        waiting = [await redis.llen(key) async for key in redis.scan_iter("q:lane:*")]
        assert sum(waiting) == 60
    finally:
        await redis.aclose()
        with psycopg.connect(postgres_server.url, autocommit=True) as connection:
            connection.execute(b"DROP DATABASE IF EXISTS test_backup WITH (FORCE)")


@pytest.mark.parametrize("how", ["accept", "requeue"])
async def test_numbers_go_on_past_now_on_connections_that_are_old(postgres_url: str, how: str) -> None:
    """As behind a pooler, which makes them anew and tells nobody."""
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        (lease,) = await inbox.claim(1)
        await inbox.turn([Failed(lease.token, "E")], 0)
        query(postgres_url, "SELECT setval(pg_get_serial_sequence('updates', 'row_id'), 1)")
        before = query(postgres_url, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        if how == "accept":
            await inbox.accept([incoming(2)])
        else:
            assert (await inbox.requeue(BOT, None, "tests")).moved == 1
        assert query(postgres_url, "SELECT max(row_id) FROM updates") > before


async def test_many_at_once_never_go_backwards(postgres_url: str) -> None:
    async with opened(postgres_url) as one, opened(postgres_url) as other:
        await one.accept([incoming(0)])
        for turn in range(5):
            query(postgres_url, "SELECT setval(pg_get_serial_sequence('updates', 'row_id'), 1)")
            first = 1 + turn * 200
            await asyncio.gather(
                *(
                    inbox.accept([incoming(number, lane=f"chat:{number}")])
                    for number in range(first, first + 200)
                    for inbox in ((one, other)[number % 2],)
                )
            )
        assert query(postgres_url, "SELECT count(DISTINCT row_id) FROM updates") == [(1001,)]


async def test_a_dispatcher_of_before_ends_no_lease_of_after(postgres_url: str, restore: Restore) -> None:
    """It runs on, with a token that the database of the backup has not yet given out."""
    async with opened(postgres_url) as old, opened(postgres_url) as new:
        await old.accept([incoming(1)])
        (lost,) = await old.claim(1)
        await restore()
        await new.accept([incoming(2)])
        (lease,) = await new.claim(1)
        for end in (Finished(lost.token), Failed(lost.token, "E")):
            assert (await old.turn([end], 0)).lost == {lost.token}
        assert not await old.uncount(lost.token)
        with closing(old.renewer()) as renewer:
            assert renewer.renew([lost.token]) == {lost.token}
        assert await new.finish(lease.token)


async def test_state_that_was_read_before_is_not_that_of_after(postgres_url: str, restore: Restore) -> None:
    key = FsmKey(BOT, "chat:1")
    async with opened(postgres_url) as old, opened(postgres_url) as new:
        assert await old.write_fsm([FsmWrite(key, 0, "before", None)])
        (lost,) = await old.read_fsm([key])
        await restore()
        assert await new.write_fsm([FsmWrite(key, 0, "after", None)])
        assert not await old.write_fsm([FsmWrite(key, lost.version, "before", None)])
        assert [value.state for value in await new.read_fsm([key])] == ["after"]
