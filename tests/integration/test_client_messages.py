"""pillarbox.Client and SyncClient on messages: over admin's REST API, and on the queue itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox import Client, SyncClient
from pillarbox.client import Cancelled, MovedDead
from pillarbox.errors import AccessRefused, MessageRefused, QueueUnavailable, SettingError
from pillarbox.outbound.audit import audited
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox.outbound.scripts import Scripts
from tests.support.admin import TOKENS, running_admin
from tests.support.dying import BOT, OTHER, bury, queue_of, turn

QUEUE = "pillarbox:outbound"


class Reached:
    """A client of either kind; a blocking one in a thread, since admin runs in this test's loop."""

    def __init__(self, client: Client | SyncClient, redis: Any, by: str) -> None:
        self.client, self.redis, self.by = client, redis, by

    async def __call__(self, name: str, *arguments: Any, **named: Any) -> Any:
        call = getattr(self.client, name)
        if isinstance(self.client, SyncClient):
            return await asyncio.to_thread(lambda: _whole(call(*arguments, **named)))
        return await call(*arguments, **named)


def _whole(answer: Any) -> Any:
    return list(answer) if hasattr(answer, "__next__") else answer


@pytest.fixture(params=[Client, SyncClient])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["rest", "redis"])
async def reached(
    request: pytest.FixtureRequest, kind: Any, valkey_url: str, postgres_url: str
) -> AsyncIterator[Reached]:
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(Redis.from_url(valkey_url))
        if request.param == "redis":
            client, by = kind(valkey_url, bot_id=BOT, by="anna"), "anna"
        else:
            admin = await stack.enter_async_context(running_admin(postgres_url, valkey_url))
            client, by = kind(admin.url, bot_id=BOT, token=TOKENS["master"][1]), "master"
        try:
            yield Reached(client, redis, by)
        finally:
            await _closed(client)


async def _closed(client: Client | SyncClient) -> None:
    if isinstance(client, Client):
        await client.close()
    else:
        await asyncio.to_thread(client.close)


def say(chat: Any, bot: Any = BOT, **more: Any) -> bytes:
    return encode(Envelope("sendMessage", {"chat_id": chat, "text": "secret"}, bot=bot, **more))


async def test_dead_messages(reached: Reached) -> None:
    await bury(reached.redis, [say(n % 3, id=f"a:{n}") for n in range(230)], queue=QUEUE)
    await bury(reached.redis, [say(1, OTHER)], reason="doubt", queue=QUEUE)
    listed = await reached("dead_messages")
    assert [dead.number for dead in listed] == sorted((dead.number for dead in listed), reverse=True)
    assert len(listed) == 230
    assert {dead.bot_id for dead in listed} == {BOT}
    assert len(await reached("dead_messages", chat_id=1)) == 77
    (one,) = await reached("dead_messages", id="a:7", method="sendMessage", reason="refused")
    assert (one.first_error, one.last_error, one.element) == ("answered:400", "answered:400", None)
    whole = await reached("dead_message", one.number)
    assert whole.element == say(1, id="a:7")
    assert await reached("dead_message", 231) is None
    assert await reached("dead_messages", [one.number, 231]) == [one]
    assert await reached("dead_messages", []) == []
    later = datetime.now(UTC) + timedelta(hours=1)
    assert await reached("dead_messages", since=later) == []


async def test_retry_and_discard(reached: Reached) -> None:
    await bury(reached.redis, [say(n) for n in range(5)], queue=QUEUE)
    await bury(reached.redis, [say(9, OTHER)], queue=QUEUE)
    heard: list[int] = []
    assert await reached("retry_dead", [1, 6, 77], progress=heard.append) == MovedDead(1, (6, 77))
    assert heard == [1] or sum(heard) == 1
    assert await reached("discard_dead", chat_id=1) == MovedDead(1)
    assert await reached("retry_dead") == MovedDead(3)
    assert await reached("retry_dead", range(100, 1300)) == MovedDead(0, tuple(range(100, 1300)))
    assert await reached.redis.zcard(f"{QUEUE}:dead:{OTHER}") == 1
    assert {row.by for row in await audited(Scripts(reached.redis, QUEUE), 10)} == {reached.by}


async def test_edit(reached: Reached) -> None:
    await bury(reached.redis, [say(1, expires_at=1.0), say(1, OTHER)], queue=QUEUE)
    with pytest.raises(MessageRefused) as refused:
        await reached("edit_dead", 1, {"method": "getMe"})
    assert refused.value.reason == "method_refused"
    changes = {"params": {"chat_id": 2, "text": "better"}, "expires_at": None}
    assert await reached("edit_dead", 1, changes)
    assert not await reached("edit_dead", 2, changes)
    (element,) = await queue_of(reached.redis, 2, QUEUE)
    assert json.loads(element) == {"method": "sendMessage", "params": changes["params"], "bot": BOT}


async def test_cancel(reached: Reached) -> None:
    await Lanes(reached.redis, QUEUE).file([Filing(say(n, id=f"a/{n}")) for n in range(3)])
    assert await reached("cancel", "a/0") == Cancelled("cancelled")
    assert await reached("cancel", "a/0") == Cancelled("ended")
    await turn(reached.redis, queue=QUEUE)
    assert await reached("cancel", "a/1") == Cancelled("sending")
    assert await reached("cancel", "b") == Cancelled("unknown")


async def test_the_wrong_place(kind: Any, valkey_url: str, postgres_url: str) -> None:
    queue, database = kind(valkey_url, bot_id=BOT), kind(postgres_url, bot_id=BOT)
    with pytest.raises(SettingError, match="messages are in the queue"):
        await Reached(database, None, "")("retry_dead")
    with pytest.raises(SettingError, match="this is the queue"):
        await Reached(queue, None, "")("retry_failed")
    gone = kind("redis://127.0.0.1:1/0", bot_id=BOT)
    with pytest.raises(QueueUnavailable):
        await Reached(gone, None, "")("cancel", "a")
    for client in (queue, database, gone):
        await _closed(client)


async def test_rights(kind: Any, valkey_url: str, postgres_url: str) -> None:
    async with running_admin(postgres_url, valkey_url) as admin:
        robot = kind(admin.url, bot_id=BOT, token=TOKENS["robot"][1])
        reached = Reached(robot, None, "")
        assert await reached("retry_dead") == MovedDead()
        assert not await reached("edit_dead", 1, {})
        with pytest.raises(AccessRefused):
            await reached("dead_messages")
        await _closed(robot)


async def test_inside_a_running_loop(valkey_url: str) -> None:
    """A blocking call of a program that has a loop, such as a notebook."""
    async with Redis.from_url(valkey_url) as redis:
        await bury(redis, [say(1)], queue=QUEUE)
        with SyncClient(valkey_url, bot_id=BOT) as client:
            assert [dead.number for dead in client.dead_messages()] == [1]
            assert client.discard_dead() == MovedDead(1)
