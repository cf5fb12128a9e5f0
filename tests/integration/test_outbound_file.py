"""Filing into the lanes, on a real Valkey."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.lanes import Filed, Filing, Lanes

QUEUE = "q"
BOT = BotId(7)


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


def message(chat: int, text: str, **more: object) -> bytes:
    return encode(Envelope("sendMessage", {"chat_id": chat, "text": text}, bot=BOT, **more))  # type: ignore[arg-type]


async def texts(redis: Any, lane: str) -> list[bytes]:
    return [line.partition(b"\n")[2] for line in await redis.lrange(f"{QUEUE}:lane:{lane}", 0, -1)]


async def test_files_in_order_inside_each_lane(redis: Any) -> None:
    filings = [Filing(message(n % 3, str(n)), id=f"7:{n}:0") for n in range(600)]
    assert await Lanes(redis, QUEUE).file(filings) == Filed(filed=600)
    for chat in range(3):
        expected = [message(chat, str(n)) for n in range(chat, 600, 3)]
        assert await texts(redis, f"7:interactive:{chat}") == expected
    assert await redis.zcard(f"{QUEUE}:ready:7:interactive") == 3
    assert await redis.hget(f"{QUEUE}:depth:7", "interactive") == b"600"


async def test_the_same_id_is_filed_once(redis: Any) -> None:
    lanes = Lanes(redis, QUEUE)
    one = Filing(message(1, "a"), id="7:1:0")
    assert await lanes.file([one, one]) == Filed(filed=1, repeats=1)
    assert await lanes.file([one]) == Filed(repeats=1)
    assert 86000 < await redis.ttl(f"{QUEUE}:id:7:7:1:0") <= 86400


async def test_what_is_no_message_is_dead_and_the_next_goes_on(redis: Any) -> None:
    filings = [
        Filing(b"nonsense", bot=BOT, id="7:1:0"),
        Filing(b"", bot=BOT, id="7:1:1"),
        Filing(b"\x80\x04K\x01.", bot=BOT),
        Filing(message(1, "x" * 5000), bot=BOT, id="7:1:2"),
        Filing(message(1, "good"), id="7:1:3"),
    ]
    lanes = Lanes(redis, QUEUE, max_message=4096)
    filed = await lanes.file(filings)
    assert filed == Filed(filed=1, dead=3, kept=1)
    assert filed.reasons == {"json": 2, "pickle": 1, "too_big": 1}
    assert await lanes.file(filings[:2]) == Filed(repeats=2)
    assert await texts(redis, "7:interactive:1") == [message(1, "good")]
    bodies = list((await redis.hgetall(f"{QUEUE}:dead:7:body")).values())
    assert any(b'"reason":"json"' in body and body.endswith(b"\nnonsense") for body in bodies)
    assert any(b'"reason":"too_big"' in body for body in bodies)
    assert await redis.lrange(f"{QUEUE}:kept", 0, -1) == [b"\x80\x04K\x01."]


async def test_a_message_without_a_bot_takes_the_filing_s_or_is_dead(redis: Any) -> None:
    element = encode(Envelope("sendMessage", {"chat_id": 5, "text": "a"}))
    assert await Lanes(redis, QUEUE).file([Filing(element, bot=BOT), Filing(element)]) == Filed(1, 0, 1)
    assert await texts(redis, "7:interactive:5") == [element]
    assert await redis.zcard(f"{QUEUE}:dead:-") == 1


async def test_dead_messages_are_bounded_newest_first(redis: Any) -> None:
    lanes = Lanes(redis, QUEUE, max_dead=10)
    await lanes.file([Filing(b"nonsense %d" % n, bot=BOT) for n in range(25)])
    bodies = (await redis.hgetall(f"{QUEUE}:dead:7:body")).values()
    assert sorted(body.rpartition(b" ")[2] for body in bodies) == [b"%d" % n for n in range(15, 25)]
    assert await redis.hget(f"{QUEUE}:numbers", "trimmed") == b"15"
