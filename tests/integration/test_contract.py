"""The contract suite over each of our storages, and over the example of one's own."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from examples.own_storage.storage import FileStorage
from pillarbox.db.schema import metadata
from pillarbox.inbox.contract.given import Make
from pillarbox.inbox.contract.suite import StorageContract
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_solo.postgres import PostgresServer
from tests.support.servers import fresh_database


@pytest.fixture(scope="module")
def database(postgres_server: PostgresServer) -> Iterator[str]:
    """One for all cases: to empty it takes less than to make it."""
    with fresh_database(postgres_server) as url:
        yield url


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self) -> Make:
        return MemoryStorage


class TestSQLite(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Make:
        return lambda limits: SQLiteStorage(tmp_path / "bot.db", limits)


class TestPostgres(StorageContract):
    @pytest.fixture
    def storage(self, database: str) -> Make:
        with psycopg.connect(database, autocommit=True) as connection:
            tables = sql.SQL(", ").join(map(sql.Identifier, metadata.tables))
            connection.execute(sql.SQL("TRUNCATE {}").format(tables))
        return lambda limits: PostgresStorage.from_url(database, limits)


class TestOwn(StorageContract):
    """The storage that the docs show."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Make:
        return lambda limits: FileStorage(tmp_path / "inbox", limits)
