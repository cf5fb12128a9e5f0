"""The contract suite over each of our storages."""

from pathlib import Path

import pytest

from pillarbox.inbox.contract.given import Make
from pillarbox.inbox.contract.suite import StorageContract
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.inbox.sqlite import SQLiteStorage


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
    def storage(self, postgres_url: str) -> Make:
        return lambda limits: PostgresStorage.from_url(postgres_url, limits)
