"""All that a service does, behind PgBouncer in transaction mode, with `DATABASE_DIRECT_URL` past it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pillarbox.db.schema import metadata
from pillarbox.db.upgrade import upgrade
from pillarbox.errors import SettingError
from pillarbox.inbox import Accepted, Finished, OutboxRow
from pillarbox.inbox.contract.given import Make
from pillarbox.inbox.contract.suite import StorageContract
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.postgres import PostgresServer
from tests.support import dispatching
from tests.support.inbox import incoming, opened, query
from tests.support.pgbouncer import pooled
from tests.support.servers import fresh_database

pytestmark = pytest.mark.pgbouncer

MANY = 25
"""Calls: past psycopg's threshold for preparing, and more than the pooler has backends."""


@pytest.fixture
def pool_url(postgres_url: str, tmp_path: Path) -> Iterator[str]:
    with pooled(postgres_url, tmp_path / "pgbouncer") as url:
        yield url


@asynccontextmanager
async def behind(pool_url: str, direct: str, **more: Any) -> AsyncIterator[PostgresStorage]:
    async with opened(pool_url, database_direct_url=direct, **more) as storage:
        yield storage


@pytest.fixture(scope="module")
def database(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    with (
        fresh_database(postgres_server) as url,
        pooled(url, tmp_path_factory.mktemp("pgbouncer")) as through,
    ):
        yield url, through


class TestContract(StorageContract):
    """All that any storage promises."""

    @pytest.fixture
    def storage(self, database: tuple[str, str]) -> Make:
        url, through = database
        with psycopg.connect(url, autocommit=True) as connection:
            tables = sql.SQL(", ").join(map(sql.Identifier, metadata.tables))
            connection.execute(sql.SQL("TRUNCATE {}").format(tables))
        return lambda limits: PostgresStorage(
            load(
                InboxSettings,
                database_url=through,
                database_direct_url=url,
                lease=limits.lease,
                max_handler_runs=limits.max_handler_runs,
                max_failed=limits.max_failed,
                max_malformed=limits.max_malformed,
                seen_for=limits.seen_for,
            )
        )


async def test_the_way_of_an_update_again_and_again_by_many_at_once(postgres_url: str, pool_url: str) -> None:
    """Each call may meet a backend that knows nothing of the call before."""
    filed: list[OutboxRow] = []

    async def file(rows: Any) -> None:
        filed.extend(rows)

    async def one(inbox: PostgresStorage, number: int) -> None:
        renewer = inbox.renewer()
        for n in range(MANY):
            await inbox.accept([incoming(number * MANY + n, lane=f"chat:{number}")])
            turn = await inbox.turn([], 2)
            while turn.leases:
                held = [lease.token for lease in turn.leases]
                assert await asyncio.to_thread(renewer.renew, held) == frozenset()
                turn = await inbox.turn([Finished(token, (b"x",)) for token in held], 2)
            await inbox.relay(file, 10)
            await inbox.ping()
        renewer.close()

    async with behind(pool_url, postgres_url) as first, behind(pool_url, postgres_url) as second:
        await asyncio.gather(*(one(inbox, n) for n, inbox in enumerate([first, second] * 3)))
        while await first.relay(file, 100):
            pass
    assert len({row.id for row in filed}) == 6 * MANY == len(filed)
    assert query(postgres_url, "SELECT 1 FROM lanes UNION ALL SELECT 1 FROM outbox") == []


async def test_hints_come_past_the_pooler(postgres_url: str, pool_url: str) -> None:
    async with behind(pool_url, postgres_url) as inbox, behind(pool_url, postgres_url) as other:
        await inbox.wait(5)  # the listener's own first look
        waiting = asyncio.create_task(inbox.wait(30))
        await asyncio.sleep(0.1)
        assert await other.accept([incoming(1)]) == [Accepted.NEW]
        async with asyncio.timeout(5):
            await waiting


async def test_locks_go_past_the_pooler_and_die_with_their_process(postgres_url: str, pool_url: str) -> None:
    async with behind(pool_url, postgres_url) as inbox, behind(pool_url, postgres_url) as other:
        async with inbox.alone("bot") as ours, other.alone("bot") as theirs:
            assert (ours, theirs) == (True, False)
        async with other.alone("bot") as theirs:
            assert theirs


async def test_locks_through_the_pooler_are_refused(pool_url: str) -> None:
    """They would stay with the pooler's connection when the process is gone."""
    async with opened(pool_url) as inbox:
        with pytest.raises(SettingError, match="DATABASE_DIRECT_URL"):
            async with inbox.alone("bot"):
                pass


async def test_a_full_pooler_costs_no_lease(postgres_url: str, pool_url: str) -> None:
    async with behind(pool_url, postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        (lease,) = await inbox.claim(1)
        renewer = inbox.renewer()
        busy = [psycopg.connect(pool_url) for _ in range(3)]
        for connection in busy:
            connection.execute("SELECT 1")
        assert await asyncio.to_thread(renewer.renew, [lease.token]) == frozenset()
        for connection in busy:
            connection.close()
        assert await inbox.finish(lease.token)
        renewer.close()


def test_migrations_through_the_pooler_are_refused(pool_url: str) -> None:
    with pytest.raises(SettingError, match="DATABASE_DIRECT_URL"):
        upgrade(pool_url)


async def test_a_dispatcher_runs_handlers_behind_it(
    postgres_url: str, pool_url: str, valkey_url: str, tmp_path: Path
) -> None:
    with dispatching.processes() as started:
        process = dispatching.Process(
            tmp_path,
            pool_url,
            valkey_url,
            DATABASE_DIRECT_URL=postgres_url,
            TELEGRAM_API_BASE="http://127.0.0.1:9",
        )
        started.append(process)
        await process.ready()
        async with dispatching.inbox(pool_url, database_direct_url=postgres_url) as inbox:
            for n in range(1, 31):
                await dispatching.accept(inbox, [dispatching.incoming(n, n % 3, f"now{n}")])
            await dispatching.until(lambda: len(dispatching.events(tmp_path, "end")) == 30)
            await dispatching.until(lambda: not query(postgres_url, "SELECT 1 FROM lanes"))
            await dispatching.until(lambda: not query(postgres_url, "SELECT 1 FROM outbox"))
