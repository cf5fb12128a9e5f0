import asyncio
from typing import Any

import aiohttp
import pytest

from pillarbox_simulator import Running
from tests.support.simulator import BOT_ID, TOKEN
from tests.support.simulator_client import SimulatorClient


@pytest.fixture
def poll(simulator: Running, http: aiohttp.ClientSession) -> Any:
    async def poll(**params: Any) -> Any:
        async with http.post(f"{simulator.url}/bot{TOKEN}/getUpdates", json=params) as answer:
            body = await answer.json()
            return body["result"] if body["ok"] else body["description"]

    return poll


def texts(updates: list[dict[str, Any]]) -> list[str]:
    return [update["message"]["text"] for update in updates]


async def say(control: SimulatorClient, *said: str) -> list[int]:
    messages = [{"bot_id": BOT_ID, "chat_id": 42, "text": text} for text in said]
    return [answer["update_id"] for answer in await control.say(messages)]


async def test_updates_stay_until_a_later_offset_confirms_them(control: SimulatorClient, poll: Any) -> None:
    ids = await say(control, "one", "two", "three")
    assert texts(await poll(limit=2)) == ["one", "two"]
    assert texts(await poll(offset=ids[1])) == ["two", "three"]
    assert texts(await poll(offset=-1)) == ["three"]
    assert texts(await poll()) == ["three"]
    assert await poll(offset=ids[2] + 1) == []


async def test_a_long_poll_ends_with_the_first_update(control: SimulatorClient, poll: Any) -> None:
    waiting = asyncio.create_task(poll(timeout=30))
    await asyncio.sleep(0.1)
    await say(control, "late")
    assert texts(await asyncio.wait_for(waiting, 5)) == ["late"]


async def test_the_last_caller_wins(control: SimulatorClient, poll: Any) -> None:
    first = asyncio.create_task(poll(timeout=30))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(poll(timeout=30))
    assert "terminated by other getUpdates request" in await asyncio.wait_for(first, 5)
    await say(control, "for the second")
    assert texts(await asyncio.wait_for(second, 5)) == ["for the second"]


async def test_a_webhook_and_getupdates_exclude_each_other(
    simulator: Running, http: aiohttp.ClientSession, poll: Any
) -> None:
    waiting = asyncio.create_task(poll(timeout=30))
    await asyncio.sleep(0.1)
    async with http.post(f"{simulator.url}/bot{TOKEN}/setWebhook", json={"url": "http://127.0.0.1:9/x"}):
        pass
    assert "terminated by setWebhook request" in await asyncio.wait_for(waiting, 5)
    assert "can't use getUpdates method while webhook is active" in await poll()


async def test_kinds_that_are_not_allowed_never_come(control: SimulatorClient, poll: Any) -> None:
    await poll(allowed_updates=["callback_query"])
    assert await say(control, "unheard") == [None]
    await poll(allowed_updates=[])
    await say(control, "heard")
    assert texts(await poll()) == ["heard"]
