"""The sender as a process, between a real Valkey and the simulator."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis

from pillarbox.outbound.acts import DeadActs, MovedDead
from pillarbox.outbound.dead import DeadFilter
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Scripts
from pillarbox_simulator import Running
from tests.support.sending import QUEUE, SenderProcess, dead, message, senders, until, waiting
from tests.support.simulator import BOT_ID, TOKEN
from tests.support.simulator_client import SimulatorClient

Make = Callable[..., SenderProcess]


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def make(valkey_url: str, simulator: Running, tmp_path: Path) -> Make:
    def sender(name: str = "one", **settings: str) -> SenderProcess:
        return SenderProcess(valkey_url, simulator.url, tmp_path, name, **settings)

    return sender


async def test_a_push_is_one_send(redis: "Redis", control: SimulatorClient, make: Make) -> None:
    async with senders([make()]) as (one,):
        await redis.rpush(QUEUE, message(42, "hi"))
        assert await control.settle(1, 20, 0.05)
        await until(lambda: none_waits(redis))
        (call,) = await control.ledger()
        assert (call["method"], call["params"], call["status"]) == (
            "sendMessage",
            {"chat_id": 42, "text": "hi"},
            200,
        )
        assert await one.stop() == 0
    assert not await redis.exists(f"{QUEUE}:heartbeat:one", f"{QUEUE}:workers", f"{QUEUE}:claims:one")


async def none_waits(redis: "Redis") -> bool:
    return await waiting(redis) == 0


async def test_two_workers_keep_the_order_of_every_chat(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    for n in range(600):
        await redis.rpush(QUEUE, message(n % 5 + 1, str(n)))
    async with senders([make("one"), make("two")]):
        assert await control.settle(600, 30)
        calls = await control.effects()
    assert len(calls) == 600
    for chat in range(5):
        sent = [int(c["params"]["text"]) for c in calls if c["params"]["chat_id"] == chat + 1]
        assert sent == list(range(chat, 600, 5))


async def test_garbage_is_set_aside_and_the_next_goes_on(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    garbage = [
        b"",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"12",
        b'{"method": 5}',
        b'{"method":"sendMessage","params":[]}',
    ]
    huge = message(1, "x" * (2 << 20)).encode()
    nested = b'{"method":"sendMessage","params":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
    refused = [message(1, "a", bot="7").encode(), b'{"method":"setWebhook","params":{"url":""}}']
    old = [b'{"__envelope__":1,"function":"set_webhook","kwargs":{"url":""}}']
    async with senders([make()]) as (one,):
        await redis.rpush(
            QUEUE, *garbage, huge, nested, *refused, *old, b"\x80\x04K\x01.", message(1, "good")
        )
        assert await control.settle(1, 20, 0.05)
        found = await dead(redis)
        log = one.log.read_text()
    assert TOKEN not in log
    assert "good" not in log
    assert [item["element"] for item in found] == [*garbage, huge, nested, *refused, *old]
    assert [item["reason"] for item in found][7:] == [
        "too_big",
        "json",
        "bot",
        "method_refused",
        "method_refused",
    ]
    assert await redis.lrange(f"{QUEUE}:kept", 0, -1) == [b"\x80\x04K\x01."]


async def test_equal_payloads_are_two_messages_and_equal_ids_are_one(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    async with senders([make()]):
        await redis.rpush(QUEUE, message(1, "same"), message(1, "same"))
        await redis.rpush(QUEUE, message(2, "a", id="x"), message(2, "b", id="x"), message(3, "end"))
        assert await control.settle(4, 20, 0.05)
        await until(lambda: none_waits(redis))
        texts = sorted(call["params"]["text"] for call in await control.effects())
    assert texts == ["a", "end", "same", "same"]


async def test_what_telegram_refuses_is_dead_with_its_words(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    await control.faults([{"kind": "403", "chat_id": 1}, {"kind": "401", "chat_id": 9, "times": 1}])
    async with senders([make()]):
        await redis.rpush(QUEUE, message(1, "no"), message(2, "yes"))
        await until(lambda: none_waits(redis))
        (found,) = await dead(redis)
    assert found["reason"] == "refused"
    assert found["detail"].startswith("403 Forbidden")
    assert found["attempts"] == 1
    assert found["element"] == message(1, "no").encode()
    assert len(await control.effects()) == 1


async def test_a_dead_message_that_is_retried_is_sent(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    await control.faults([{"kind": "403"}])
    acts = DeadActs(Scripts(redis, QUEUE), Reader())
    async with senders([make()]):
        await redis.rpush(QUEUE, message(1, "again"))
        (found,) = await until(lambda: acts.messages.page(DeadFilter(), None, 10))
        assert (found.first_error, found.last_error) == ("answered:403", "answered:403")
        await control.faults([])
        assert await acts.retry([found.number], "anna") == MovedDead(1)
        assert await control.settle(1, 20, 0.05)
        await until(lambda: none_waits(redis))
    assert await dead(redis) == []


async def test_a_flood_is_obeyed_by_both_workers(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    await control.faults([{"kind": "429", "chat_id": 1, "nth": 1, "retry_after": 2}])
    for n in range(10):
        await redis.rpush(QUEUE, message(1, str(n)), message(2, str(n)))
    async with senders([make("one"), make("two")]):
        assert await control.settle(20, 20)
        calls = [c for c in await control.ledger() if c["params"]["chat_id"] == 1]
        others = [c for c in await control.ledger() if c["params"]["chat_id"] == 2]
    assert [c["status"] for c in calls] == [429] + [200] * 10
    assert calls[1]["at"] - calls[0]["at"] >= 2.0
    assert [c["params"]["text"] for c in calls[1:]] == [str(n) for n in range(10)]
    assert others[-1]["at"] - calls[0]["at"] < 1.5


async def test_an_outage_burns_nothing(redis: "Redis", control: SimulatorClient, make: Make) -> None:
    await control.faults([{"kind": "502"}])
    for n in range(30):
        await redis.rpush(QUEUE, message(n + 1, "x"))
    async with senders([make(MAX_RETRIES="2")]):
        await until(lambda: paused(redis))
        await asyncio.sleep(3)
        assert len(await control.ledger(method="sendMessage")) <= 30
        await control.faults([])
        assert await control.settle(30, 30)
    assert await dead(redis) == []


async def paused(redis: "Redis") -> bool:
    return bool(await redis.exists(f"{QUEUE}:pause:{BOT_ID}"))


async def test_not_before_and_expires_at(redis: "Redis", control: SimulatorClient, make: Make) -> None:
    async with senders([make()]):
        await until(lambda: redis.exists(f"{QUEUE}:heartbeat:one"))
        seconds, micros = await redis.time()
        now = seconds + micros / 1e6
        await redis.rpush(
            QUEUE, message(1, "late", not_before=now + 2), message(1, "old", expires_at=now - 1)
        )
        await redis.rpush(QUEUE, message(1, "soon"))
        assert await control.settle(2, 20, 0.05)
        calls = await control.effects()
    assert [c["params"]["text"] for c in calls] == ["soon", "late"]
    assert calls[1]["at"] - now >= 2
    assert calls[1]["at"] - now < 3
    assert [d["reason"] for d in await dead(redis)] == ["expired"]


async def test_a_bot_without_a_token_here_waits_and_no_one_else_does(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    other = "700002:for-tests-only-BBBBBBBBBBBBBBBBBBBBBBBB"
    async with senders([make(BOT_TOKENS=f"{TOKEN},{other}")]) as (one,):
        await redis.rpush(QUEUE, message(1, "waits", bot=999), message(1, "whose?"))
        await redis.rpush(f"{QUEUE}:bulk", message(1, "b", bot=700002))
        await redis.rpush(QUEUE, message(1, "a", bot=BOT_ID))
        assert await control.settle(2, 20, 0.05)
        await until(lambda: redis.llen(f"{QUEUE}:lane:999:interactive:1"))
        assert sorted((c["bot_id"], c["params"]["text"]) for c in await control.ledger()) == [
            (BOT_ID, "a"),
            (700002, "b"),
        ]
        await until(partial(_says, one, "no sender has the token of"))
        await asyncio.sleep(6)
        said = one.log.read_text()
        assert said.count("no sender has the token of") == said.count('"bot": 999') == 1
        assert TOKEN not in said
    assert [item["reason"] for item in await dead(redis, "-")] == ["bot"]


async def _says(sender: SenderProcess, words: str) -> bool:
    return words in sender.log.read_text()


async def test_a_revoked_token_pauses_the_bot_and_burns_nothing(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    await control.faults([{"kind": "401"}])
    async with senders([make(), make("two")]):
        await redis.rpush(QUEUE, *(message(n + 1, str(n)) for n in range(20)))
        await until(lambda: paused(redis))
        await control.faults([])
        assert await control.settle(20, 20)
    assert await dead(redis) == []


async def test_a_doubt_is_one_copy_more_and_then_dead(
    redis: "Redis", control: SimulatorClient, make: Make
) -> None:
    lost = [{"kind": "reset_after", "chat_id": n, "times": 3 - n} for n in (1, 2)]
    await control.faults(lost)
    async with senders([make()]):
        await redis.rpush(QUEUE, message(1, "a"), message(2, "b"), message(3, "c", on_doubt="drop"))
        await until(lambda: none_waits(redis))
        counts = [c["params"]["chat_id"] for c in await control.effects()]
    assert sorted(counts) == [1, 1, 2, 2, 3]
    assert [(d["reason"], d["attempts"]) for d in await dead(redis)] == [("doubt", 2)]
