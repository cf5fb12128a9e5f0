"""Updates and storages for tests of the inbox."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Incoming, Lease
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load

BOT = BotId(700_001)


def incoming(number: int, lane: str = "chat:1", body: bytes | None = None, **other: Any) -> Incoming:
    chat_id = int(lane.partition(":")[2]) if lane.startswith("chat:") else None
    given = {"bot_id": BOT, "kind": "message", "chat_id": chat_id, "user_id": 9, **other}
    return Incoming(
        update_id=UpdateId(number), lane=lane, body=b"{%d}" % number if body is None else body, **given
    )


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[PostgresStorage]:
    storage = PostgresStorage(load(InboxSettings, database_url=url, **settings))
    try:
        await storage.open()
        yield storage
    finally:
        await storage.close()


def numbers(leases: list[Lease]) -> list[int]:
    return [lease.update_id for lease in leases]


def query(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
