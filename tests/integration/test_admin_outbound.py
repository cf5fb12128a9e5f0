"""Outbound depths and dead messages, over real HTTP and Valkey."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.ids import BotId
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox_solo.valkey import ValkeyServer
from tests.support.admin import BOT, TOKENS, Admin, running_admin
from tests.support.servers import running

QUEUE = "pillarbox:outbound"


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    async with Redis.from_url(valkey_url) as redis:
        yield redis


def say(chat: int, **more: object) -> bytes:
    return json.dumps(
        {"method": "sendMessage", "params": {"chat_id": chat, "text": "secret"}} | more
    ).encode()


async def test_depths(admin: Admin, redis: "Redis") -> None:
    lanes, bot = Lanes(redis, QUEUE), BotId(BOT)
    await lanes.file([Filing(say(1), bot), Filing(say(1), bot), Filing(say(2), bot, bulk=True)])
    await lanes.file([Filing(say(3, not_before=4e9), bot)])
    await redis.rpush(QUEUE, say(4), say(5))
    found = await admin.get("/api/v1/outbound")
    assert found["doors"] == {QUEUE: 2, f"{QUEUE}:bulk": 0}
    (queued,) = found["bots"]
    assert queued.pop("oldest_seconds") < 60
    assert queued == {
        "bot_id": BOT,
        "waiting": {"interactive": 2, "bulk": 1},
        "delayed": 1,
        "dead": 0,
        "paused": "unserved",
    }
    await lanes.scripts.call("live", "enter", "sender-1", "a", "", BOT + 1)
    assert (await admin.get("/api/v1/outbound"))["bots"][0]["paused"] == "unserved"
    await lanes.scripts.call("live", "enter", "sender-2", "b", "", BOT)
    assert (await admin.get("/api/v1/outbound"))["bots"][0]["paused"] is None


async def test_dead_messages_from_the_newest_without_what_they_say(admin: Admin, redis: "Redis") -> None:
    lanes = Lanes(redis, QUEUE)
    await lanes.file([Filing(b"garbage-secret"), Filing(say(1)), Filing(b"\xff", BotId(BOT))])
    for number in range(4):
        await lanes.file([Filing(b"x%d" % number, BotId(BOT + number % 2))])
    found: list[Any] = []
    after: str | None = ""
    while after is not None:
        page = await admin.get(f"/api/v1/outbound/dead?limit=2&after={after}")
        assert "secret" not in str(page)
        found += page["items"]
        after = page["next"]
    assert [item["number"] for item in found] == [7, 6, 5, 4, 3, 2, 1]
    assert [item["bot_id"] for item in found] == [BOT + 1, BOT, BOT + 1, BOT, BOT, None, None]
    assert found[-1]["size"] == len(b"garbage-secret")
    assert all(item["reason"] for item in found)


async def test_the_page_shows_both(admin: Admin, redis: "Redis") -> None:
    await Lanes(redis, QUEUE).file([Filing(b"garbage-secret"), Filing(say(1), BotId(BOT))])
    headers = {"Sec-Fetch-Site": "same-origin"}
    async with admin.call("POST", "/login", None, data={"token": TOKENS["viewer"][1]}, headers=headers):
        pass
    async with admin.call("GET", "/outbound", None) as response:
        text = await response.text()
    assert response.status == 200
    assert str(BOT) in text
    assert "no bot" in text
    assert "secret" not in text


async def test_redis_goes_away_and_returns(tmp_path: Path, postgres_url: str) -> None:
    server = ValkeyServer(tmp_path / "valkey")
    with running(server):
        async with running_admin(postgres_url, server.url) as admin:
            assert (await admin.get("/api/v1/outbound"))["bots"] == []
            server.kill()
            problem = await admin.get("/api/v1/outbound", status=503)
            assert "Redis" in problem["detail"]
            assert (await admin.get("/api/v1/bots"))["items"] == []
            async with admin.http.get(f"{admin.url}/readyz") as response:
                assert response.status == 503
                assert set((await response.json())["failing"]) == {"redis"}
            server.start()
            assert (await admin.get("/api/v1/outbound"))["bots"] == []
