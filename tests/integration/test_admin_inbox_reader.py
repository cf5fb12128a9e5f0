"""Admin's questions, asked of a storage itself: the same answers as its SQL gives on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Filter, Incoming, Malformed
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_admin.inbox_reader import InboxReader

BOT = BotId(7)
ERRORS = ("KeyError: 'city' at bot.py:31", "KeyError: 'city' at bot.py:31", "HandlerTimeout: longer")


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SQLiteStorage]:
    storage = SQLiteStorage(tmp_path / "bot.db")
    await storage.open()
    await storage.lock([BOT])
    for number, error in enumerate(ERRORS, 1):
        body = b'{"n": %d}' % number
        await storage.accept([Incoming(BOT, UpdateId(number), "message", f"chat:{number}", body, number, 9)])
        (lease,) = await storage.claim(1)
        await storage.fail(lease.token, error)
    yield storage
    await storage.close()


async def test_bots_groups_and_pages(storage: SQLiteStorage) -> None:
    reader = InboxReader(storage, [BOT])
    (bot,) = await reader.bots()
    assert (bot.bot_id, bot.waiting, bot.failed) == (BOT, 0, 3)
    groups = [(g.type, g.place, g.number) for g in await reader.groups(BOT, Filter())]
    assert groups == [("KeyError", "bot.py:31", 2), ("HandlerTimeout", "", 1)]
    first = await reader.failed(BOT, Filter(), None, 2)
    rest = await reader.failed(BOT, Filter(), first.next, 2)
    assert [row.update_id for page in (first, rest) for row in page.rows] == [3, 2, 1]
    assert rest.next is None


async def test_filters_and_one_in_full(storage: SQLiteStorage) -> None:
    reader = InboxReader(storage, [BOT])
    page = await reader.failed(BOT, Filter(error="KeyError", chat_id=2), None, 9)
    assert [row.update_id for row in page.rows] == [2]
    found = await reader.failed_update(BOT, UpdateId(3), None)
    assert found is not None
    assert (found.type, found.body, found.lane) == ("HandlerTimeout", b'{"n": 3}', "chat:3")
    assert await reader.failed_update(BOT, UpdateId(4), None) is None


async def test_malformed_bodies_by_pages(storage: SQLiteStorage) -> None:
    reader = InboxReader(storage, [BOT])
    for number in range(3):
        await storage.malformed(Malformed(BOT, "not JSON", b"x" * (number + 1)))
    first = await reader.malformed(None, 2)
    rest = await reader.malformed(first.next, 2)
    assert [row.size for page in (first, rest) for row in page.rows] == [3, 2, 1]
    assert rest.next is None
