"""A migration beside services that go on: nobody waits for it longer than its lock's timeout."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from pillarbox.db.upgrade import PAUSES, upgrade
from pillarbox.errors import StorageUnavailable
from pillarbox.inbox import Accepted
from pillarbox.inbox import sql as statements
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox import incoming, query

LOCK_TIMEOUT = 2.0
BEFORE = "0002"
SINCE = ((", inbox_advance()", ""), ("user_id, sealed, body", "user_id, body"))
"""What no accept of before did."""
WAITS = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'ALTER%'
"""


@pytest.fixture
def old_url(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the revision before."""
    name = sql.Identifier(f"old_{abs(hash(request.node.name))}")
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    url = postgres_server.database(f"old_{abs(hash(request.node.name))}")
    upgrade(url, BEFORE)
    yield url
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


class Acceptor:
    """A service that was started before, and knows no revision; remembers its longest wait."""

    def __init__(self, url: str) -> None:
        self._storage = PostgresStorage(load(InboxSettings, database_url=url))
        self._ended = asyncio.Event()
        self.count = 0
        self.longest = 0.0

    async def run(self) -> None:
        while not self._ended.is_set():
            started = time.perf_counter()
            self.count += 1
            answers = await self._storage.accept([incoming(self.count, lane=f"chat:{self.count % 50}")])
            assert answers == [Accepted.NEW]
            self.longest = max(self.longest, time.perf_counter() - started)
        await self._storage.close()

    def end(self) -> None:
        self._ended.set()


async def test_accepts_go_on_while_a_table_is_busy_and_the_migration_comes_through(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction of somebody's keeps `lanes`: the migration waits, gives up, and tries again."""
    accept = statements.ACCEPT
    for new, old in SINCE:
        accept = accept.replace(new, old)
    monkeypatch.setattr(statements, "ACCEPT", accept)
    acceptor, tries = Acceptor(old_url), []
    async with asyncio.TaskGroup() as group:
        group.create_task(acceptor.run())
        with psycopg.connect(old_url) as busy:
            busy.execute("SELECT count(*) FROM lanes")

            def pause(seconds: float) -> None:
                tries.append(seconds)
                busy.rollback()

            migration = asyncio.create_task(asyncio.to_thread(upgrade, old_url, "head", pause))
            while not query(old_url, WAITS):  # noqa: ASYNC110 - the database's own state
                await asyncio.sleep(0.02)
            await migration
        acceptor.end()
    assert tries == [PAUSES[0]]
    assert acceptor.longest < LOCK_TIMEOUT + 1.5
    assert query(old_url, "SELECT count(*) FROM updates") == [(acceptor.count,)]
    assert query(old_url, "SELECT version_num FROM alembic_version") > [(BEFORE,)]


async def test_a_table_that_stays_busy_ends_the_migration_and_changes_nothing(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pillarbox.db.upgrade.PAUSES", (0.0,))
    with psycopg.connect(old_url) as busy:
        busy.execute("SELECT count(*) FROM lanes")
        with pytest.raises(StorageUnavailable, match="LockNotAvailable"):
            await asyncio.to_thread(upgrade, old_url, "head", lambda _: None)
    assert query(old_url, "SELECT version_num FROM alembic_version") == [(BEFORE,)]
