"""Senders under the simulator's limits, which are Telegram's, scaled; the ledger and its check tell."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from redis.asyncio import Redis

from pillarbox_simulator import Running
from tests.support.sending import QUEUE, SenderProcess, dead, message, senders, until, waiting
from tests.support.simulator import BOT_ID
from tests.support.simulator_client import SimulatorClient

Make = Callable[..., SenderProcess]
SCALE = 20
FASTER = {
    "LIMIT_CHAT": str(SCALE),
    "LIMIT_GROUP": "20",
    "LIMIT_GROUP_SECONDS": str(60 / SCALE),
    "LIMIT_BULK": str(30 * SCALE),
    "LIMIT_BOT": str(300 * SCALE),
}
UNDER_WAY = 0.15
"""Seconds that a call which was claimed before a 429 may take until the ledger has it."""


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def make(valkey_url: str, simulator: Running, tmp_path: Path) -> Make:
    def sender(name: str = "one", **settings: str) -> SenderProcess:
        return SenderProcess(valkey_url, simulator.url, tmp_path, name, **{**FASTER, **settings})

    return sender


@pytest.fixture
async def enforced(simulator: Running, http: aiohttp.ClientSession) -> Running:
    """Each of the limits is answered 429 when it is broken."""
    limits = {
        "mode": "enforced",
        "chat_per_second": SCALE,
        "chat_burst": 3,
        "group_calls": 20,
        "group_seconds": 60 / SCALE,
        "bulk_per_second": 30 * SCALE,
    }
    async with http.put(f"{simulator.url}/_ctl/limits", json=limits) as answer:
        answer.raise_for_status()
    return simulator


async def counts(simulator: Running, http: aiohttp.ClientSession) -> dict[str, int]:
    async with http.get(f"{simulator.url}/_ctl/check") as answer:
        found: dict[str, int] = (await answer.json())["counts"]
        return found


def floods(calls: list[dict[str, Any]]) -> int:
    return sum(call["status"] == 429 for call in calls)


async def push(redis: "Redis", messages: list[str], door: str = QUEUE) -> None:
    for first in range(0, len(messages), 500):
        await redis.rpush(door, *messages[first : first + 500])


async def test_300_messages_to_one_chat_beside_300_chats(
    redis: "Redis", control: SimulatorClient, make: Make, enforced: Running, http: aiohttp.ClientSession
) -> None:
    await push(redis, [message(1, f"#1:{n}") for n in range(1, 301)])
    await push(redis, [message(chat, f"#{chat}:1") for chat in range(1000, 1300)])
    async with senders([make("one"), make("two")]):
        assert await control.settle(600, 40)
        calls = await control.ledger(method="sendMessage")
    to_one = [call["at"] for call in calls if call["params"]["chat_id"] == 1]
    others = [call["at"] for call in calls if call["params"]["chat_id"] != 1]
    assert floods(calls) == 0
    assert max(others) - min(others) < (to_one[-1] - to_one[0]) / 3
    assert (300 - 3) / SCALE <= to_one[-1] - to_one[0] < 300 / SCALE * 1.25
    assert set((await counts(enforced, http)).values()) == {0}


async def test_a_group_has_20_calls_in_any_window_also_where_one_is_held(
    redis: "Redis", control: SimulatorClient, make: Make, enforced: Running, http: aiohttp.ClientSession
) -> None:
    """The held call takes effect at once, and is answered late: 8 s of 60, scaled."""
    await control.faults([{"kind": "slow", "nth": 5, "seconds": 8 / SCALE, "chat_id": -1}])
    await push(redis, [message(-1, f"#-1:{n}") for n in range(1, 61)])
    async with senders([make("one", LIMIT_CHAT="0"), make("two", LIMIT_CHAT="0")]):
        assert await control.settle(60, 40)
        calls = await control.ledger(method="sendMessage")
    assert floods(calls) == 0
    times = [call["at"] for call in calls]
    assert all(later - earlier >= 60 / SCALE for earlier, later in zip(times, times[20:], strict=False))
    assert times[-1] - times[0] < 3 * 60 / SCALE
    assert (await counts(enforced, http))["limits_broken"] == 0


async def test_bulk_goes_at_its_rate_and_replies_do_not_wait(
    redis: "Redis", control: SimulatorClient, make: Make, enforced: Running, http: aiohttp.ClientSession
) -> None:
    bulk, replies, seconds = 3000, 200, 4.0
    posted: dict[str, float] = {}
    async with senders([make("one"), make("two")]):
        await until(lambda: redis.exists(f"{QUEUE}:limits"))
        await push(
            redis, [message(chat, f"#{chat}:1") for chat in range(10_000, 10_000 + bulk)], f"{QUEUE}:bulk"
        )
        chats = [
            {"bot_id": BOT_ID, "chat_id": chat, "user_id": chat, "text": "hi"}
            for chat in range(1, replies + 1)
        ]
        await control.say(chats)
        for chat in range(1, replies + 1):
            (at, micros) = await redis.time()
            posted[f"#{chat}:1"] = at + micros / 1e6
            await redis.rpush(QUEUE, message(chat, f"#{chat}:1"))
            await asyncio.sleep(seconds / replies)
        assert await control.settle(bulk + replies, 40)
        calls = await control.ledger(method="sendMessage")
    times = [call["at"] for call in calls if call["params"]["chat_id"] >= 10_000 and call["effect"]]
    waits = sorted(
        call["at"] - posted[call["params"]["text"]] for call in calls if call["params"]["text"] in posted
    )
    print(
        f"bulk {len(times) / (times[-1] - times[0]):.0f}/s; replies p99 {waits[int(len(waits) * 0.99)]:.3f} s"
    )
    assert bulk / (times[-1] - times[0]) >= 0.8 * 30 * SCALE
    assert floods(calls) <= len(calls) / 1000
    assert waits[int(len(waits) * 0.99)] < 0.2
    assert (await counts(enforced, http))["lost"] == 0


async def test_a_storm_of_429s_binds_four_workers(
    redis: "Redis", control: SimulatorClient, make: Make, simulator: Running, http: aiohttp.ClientSession
) -> None:
    await control.faults([{"kind": "429", "probability": 0.15, "seed": 1, "retry_after": 1, "times": 40}])
    await push(redis, [message(n % 40 + 1, f"#{n % 40 + 1}:{n // 40 + 1}") for n in range(800)])
    off = {"LIMIT_CHAT": "0"}
    async with senders([make(name, **off) for name in ("one", "two", "three", "four")]):
        assert await control.settle(800, 60)
        calls = await control.ledger(method="sendMessage")
    assert floods(calls) == 40
    found = await counts(simulator, http)
    assert {name: found[name] for name in ("lost", "doubled", "reordered", "retry_after_ignored")} == {
        "lost": 0,
        "doubled": 0,
        "reordered": 0,
        "retry_after_ignored": 0,
    }
    assert early(calls) == []
    assert await dead(redis) == []


def early(calls: list[dict[str, Any]]) -> list[tuple[object, float]]:
    """Calls to a blocked chat, or of a blocked bot (three chats within 5 s), before its second was over."""
    blocked: dict[object, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    recent: dict[object, float] = {}
    found = []
    for call in calls:
        chat, at = call["params"]["chat_id"], call["at"]
        for scope in (chat, "bot"):
            since, until_ = blocked[scope]
            if since + UNDER_WAY < at < until_:
                found.append((scope, at - since))
        if call["status"] == 429:
            recent = {other: when for other, when in recent.items() if at - when < 5} | {chat: at}
            blocked[chat] = (at, at + 1)
            if len(recent) >= 3:
                blocked["bot"] = (at, at + 1)
    return found


async def test_a_429_that_names_no_time(redis: "Redis", control: SimulatorClient, make: Make) -> None:
    await control.faults([{"kind": "429", "nth": 1, "chat_id": 1}])
    await push(redis, [message(1, "a"), message(1, "b"), message(2, "c")])
    async with senders([make()]):
        assert await control.settle(3, 20)
        calls = [call for call in await control.ledger() if call["params"]["chat_id"] == 1]
    assert [call["params"]["text"] for call in calls] == ["a", "a", "b"]
    assert calls[1]["at"] - calls[0]["at"] >= 5


async def test_what_is_worthless_when_late_is_dead(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    late = '{"method": "sendChatAction", "params": {"chat_id": 1, "action": "typing"}, "trace": "visit-1"}'
    await control.faults([{"kind": "429", "nth": 1, "chat_id": 1, "retry_after": 5}])
    async with senders([make()]) as (one,):
        await push(redis, [message(1, "a"), late, message(1, "b")])
        assert await control.settle(2, 20)
        await until(lambda: none_waits(redis))
        (found,) = await dead(redis)
        log = one.log.read_text()
    assert (found["reason"], found["element"]) == ("expired", late.encode())
    assert "visit-1" in log
    assert [call["method"] for call in await control.ledger()] == ["sendMessage"] * 3


async def none_waits(redis: "Redis") -> bool:
    return await waiting(redis) == 0
