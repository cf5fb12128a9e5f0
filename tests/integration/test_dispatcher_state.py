"""FSM state on a real Valkey."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiogram.fsm.storage.base import StorageKey

from pillarbox.settings import RedisSettings
from pillarbox_dispatcher.retry import StateUnavailable
from pillarbox_dispatcher.state import PREFIX, StateStorage, connect, patience

KEY = StorageKey(bot_id=42, chat_id=5, user_id=5)


@pytest.fixture
async def states(valkey_url: str) -> AsyncIterator[StateStorage]:
    redis = connect(RedisSettings(redis_url=valkey_url))
    yield StateStorage(redis)
    await redis.aclose()


async def test_state_and_data_come_back(states: StateStorage) -> None:
    assert await states.get_state(KEY) is None
    await states.set_state(KEY, "Form:city")
    await states.set_data(KEY, {"city": "Zürich"})
    assert await states.get_state(KEY) == "Form:city"
    assert await states.get_data(KEY) == {"city": "Zürich"}
    await states.set_state(KEY, None)
    await states.set_data(KEY, {})
    assert await states.get_state(KEY) is None
    assert await states.get_data(KEY) == {}


@pytest.mark.parametrize(
    "other",
    [
        StorageKey(bot_id=43, chat_id=5, user_id=5),
        StorageKey(bot_id=42, chat_id=5, user_id=5, business_connection_id="b"),
        StorageKey(bot_id=42, chat_id=5, user_id=5, destiny="scene"),
        StorageKey(bot_id=42, chat_id=5, user_id=5, thread_id=1),
    ],
)
async def test_nobody_else_shares_it(states: StateStorage, other: StorageKey) -> None:
    await states.set_state(KEY, "Form:city")
    assert await states.get_state(other) is None
    assert all(str(key).startswith(f"b'{PREFIX}:42:") for key in await states.redis.keys("*"))


async def test_what_is_asked_in_one_pass_is_one_command(states: StateStorage) -> None:
    keys = [StorageKey(bot_id=42, chat_id=n, user_id=n) for n in range(50)]
    for key in keys[::2]:
        await states.set_state(key, f"S:{key.chat_id}")
    await states.redis.config_resetstat()
    found = await asyncio.gather(*(states.get_state(key) for key in keys))
    assert found == [f"S:{n}" if n % 2 == 0 else None for n in range(50)]
    stats = await states.redis.info("commandstats")
    assert stats["cmdstat_mget"]["calls"] == 1
    assert "cmdstat_get" not in stats


async def test_while_redis_is_away_the_update_waits(unused_tcp_port: int) -> None:
    redis = connect(RedisSettings(redis_url=f"redis://127.0.0.1:{unused_tcp_port}"))
    states = StateStorage(redis, patience=0.1)
    with pytest.raises(StateUnavailable):
        await states.get_state(KEY)
    with pytest.raises(StateUnavailable):
        await states.set_state(KEY, "S")
    with pytest.raises(StateUnavailable):
        await states.get_data(KEY)
    await redis.aclose()


@pytest.mark.parametrize(("timeout", "expected"), [(300, 10), (4, 2), (0, 10)])
def test_patience_leaves_the_handlers_their_time(timeout: float, expected: float) -> None:
    assert patience(timeout) == expected
