"""Storages as a model of the inbox meets them: each with its clock, and how to make it again on its data.

Time is the model's own where a storage takes a clock; PostgreSQL's leases are let run out by its table.
"""

from pathlib import Path

import psycopg
from psycopg import sql

from pillarbox.db.schema import metadata
from pillarbox.ids import BotId
from pillarbox.inbox import Limits, Storage
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.inbox.sqlite import SQLiteStorage

BOT = BotId(42)


LIMITS = Limits(lease=30, max_handler_runs=3, max_failed=4)


class World:
    """A storage, its clock, and how to make it again on the same data."""

    durable = True

    def __init__(self) -> None:
        self.time = 0.0

    def make(self) -> Storage:
        raise NotImplementedError

    def clock(self) -> float:
        return self.time

    def now(self) -> float:
        return 1_800_000_000.0 + self.time

    def expire(self) -> None:
        self.time += LIMITS.lease + 1

    def empty(self) -> None:
        """Before each example."""


class InMemory(World):
    durable = False

    def make(self) -> Storage:
        return MemoryStorage(LIMITS, now=self.now, clock=self.clock)


class OnSQLite(World):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._number = 0

    def make(self) -> Storage:
        return SQLiteStorage(self._folder / f"{self._number}.db", LIMITS, now=self.now, clock=self.clock)

    def empty(self) -> None:
        self._number += 1


class OnPostgres(World):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._connection = psycopg.connect(url, autocommit=True)

    def make(self) -> Storage:
        return PostgresStorage.from_url(self._url, LIMITS)

    def expire(self) -> None:
        self._connection.execute(
            "UPDATE lanes SET lease_until = now() - interval '1 s' WHERE token IS NOT NULL"
        )

    def empty(self) -> None:
        tables = sql.SQL(", ").join(map(sql.Identifier, metadata.tables))
        self._connection.execute(sql.SQL("TRUNCATE {}").format(tables))

    def close(self) -> None:
        self._connection.close()
