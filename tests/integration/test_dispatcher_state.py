"""aiogram's storage on a real inbox, as a startup hook uses it: outside of any run."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiogram.fsm.state import State, StatesGroup
from aiogram.fsm.storage.base import StorageKey

from pillarbox.inbox import Storage
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_dispatcher.state import StateStorage, patience
from tests.support.dispatching import inbox

KEY = StorageKey(bot_id=42, chat_id=5, user_id=5)
MOST = (1 << 62, -(1 << 62))


class Form(StatesGroup):
    city = State()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    if request.param == "postgres":
        async with inbox(request.getfixturevalue("postgres_url")) as postgres:
            yield postgres
        return
    storage = MemoryStorage() if request.param == "memory" else SQLiteStorage(tmp_path / "bot.db")
    await storage.open()
    yield storage
    await storage.close()


@pytest.fixture
def states(storage: Storage) -> StateStorage:
    return StateStorage(storage)


async def test_state_and_data_come_back(states: StateStorage) -> None:
    assert await states.get_state(KEY) is None
    assert await states.get_data(KEY) == {}
    await states.set_state(KEY, Form.city)
    await states.set_data(KEY, {"city": "Zürich", "n": [1, None, "\0"]})
    assert await states.get_state(KEY) == "Form:city"
    assert await states.get_data(KEY) == {"city": "Zürich", "n": [1, None, "\0"]}
    assert await states.update_data(KEY, {"n": 2}) == {"city": "Zürich", "n": 2}
    assert await states.get_value(KEY, "n") == 2
    await states.set_state(KEY, None)
    assert await states.get_data(KEY) == {"city": "Zürich", "n": 2}
    await states.set_data(KEY, {})
    assert await states.get_state(KEY) is None
    assert await states.get_data(KEY) == {}


@pytest.mark.parametrize(
    "other",
    [
        StorageKey(bot_id=43, chat_id=5, user_id=5),
        StorageKey(bot_id=42, chat_id=5, user_id=6),
        StorageKey(bot_id=42, chat_id=5, user_id=5, business_connection_id="b"),
        StorageKey(bot_id=42, chat_id=5, user_id=5, destiny="scene"),
        StorageKey(bot_id=42, chat_id=5, user_id=5, thread_id=1),
        StorageKey(bot_id=42, chat_id=MOST[0], user_id=MOST[1]),
    ],
)
async def test_nobody_else_shares_it(states: StateStorage, other: StorageKey) -> None:
    await states.set_state(KEY, "Form:city")
    assert await states.get_state(other) is None
    await states.set_state(other, "Form:other")
    assert await states.get_state(KEY) == "Form:city"


async def test_what_is_asked_in_one_pass_is_one_answer(states: StateStorage) -> None:
    keys = [StorageKey(bot_id=42, chat_id=n, user_id=n) for n in range(50)]
    for key in keys[::2]:
        await states.set_state(key, f"S:{key.chat_id}")
    found = await asyncio.gather(*(states.get_state(key) for key in keys))
    assert found == [f"S:{n}" if n % 2 == 0 else None for n in range(50)]


async def test_two_that_set_state_and_data_at_once_lose_neither(states: StateStorage) -> None:
    for n in range(10):
        await asyncio.gather(states.set_state(KEY, f"S:{n}"), states.set_data(KEY, {"n": n}))
        assert (await states.get_state(KEY), await states.get_data(KEY)) == (f"S:{n}", {"n": n})


@pytest.mark.parametrize(("timeout", "expected"), [(300, 10), (4, 2), (0, 10)])
def test_patience_leaves_the_handlers_their_time(timeout: float, expected: float) -> None:
    assert patience(timeout) == expected
