"""A message that waits is cancelled by its id, on a real Valkey."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.outbound.audit import audited
from pillarbox.outbound.cancelling import Cancelled, cancel
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.files import File
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox.outbound.scripts import Scripts
from tests.support.dying import BOT, OTHER, QUEUE, bury, end, lane_of, queue_of, turn

DUE = 4e9


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    async with Redis.from_url(valkey_url) as redis:
        yield redis


def message(chat: Any, id: str, **more: Any) -> bytes:
    return encode(Envelope(more.pop("method", "sendMessage"), {"chat_id": chat}, bot=BOT, id=id, **more))


async def file(redis: Any, *elements: bytes, bulk: bool = False) -> None:
    await Lanes(redis, QUEUE).file([Filing(element, bulk=bulk) for element in elements])


async def cancelled(redis: Any, id: str, bot: Any = BOT) -> Cancelled:
    return await cancel(Scripts(redis, QUEUE), bot, id, "anna")


async def at_rest(redis: Any) -> None:
    """Every lane that is not empty is either ready or claimed; every depth is the length of its lanes."""
    claims = await redis.hkeys(f"{QUEUE}:claims:incarnation")
    depth: dict[str, int] = {}
    async for key in redis.scan_iter(f"{QUEUE}:lane:*"):
        bot, kind, chat = key.decode().removeprefix(f"{QUEUE}:lane:").split(":", 2)
        ready = await redis.zscore(f"{QUEUE}:ready:{bot}:{kind}", chat) is not None
        assert ready != (f"{bot}:{kind}:{chat}".encode() in claims)
        depth[kind] = depth.get(kind, 0) + await redis.llen(key)
    told = {kind.decode(): int(n) for kind, n in (await redis.hgetall(f"{QUEUE}:depth:{BOT}")).items()}
    assert {kind: n for kind, n in told.items() if n} == depth
    for kind in told:
        for chat in await redis.zrange(f"{QUEUE}:ready:{BOT}:{kind}", 0, -1):
            assert await redis.exists(f"{QUEUE}:lane:{BOT}:{kind}:{chat.decode()}")


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_from_any_place_of_a_lane(redis: Any, place: int) -> None:
    elements = [message(1, f"a:{n}") for n in range(3)]
    await file(redis, *elements)
    assert await cancelled(redis, f"a:{place}") == Cancelled("cancelled")
    assert await queue_of(redis, 1) == elements[:place] + elements[place + 1 :]
    await at_rest(redis)
    assert await cancelled(redis, f"a:{place}") == Cancelled("ended")
    await file(redis, elements[place])
    assert len(await queue_of(redis, 1)) == 2


@pytest.mark.parametrize("chat", [1, -1001, "@News", "nonsense"], ids=["person", "group", "name", "no chat"])
@pytest.mark.parametrize("bulk", [False, True])
async def test_the_last_one_leaves_nothing(redis: Any, chat: Any, bulk: bool) -> None:
    await file(redis, message(chat, "a"), bulk=bulk)
    assert await cancelled(redis, "a") == Cancelled("cancelled")
    assert not [key async for key in redis.scan_iter(f"{QUEUE}:lane:*")]
    assert not [key async for key in redis.scan_iter(f"{QUEUE}:ready:*")]
    await at_rest(redis)
    assert await turn(redis) == []


async def test_an_answer_to_a_query(redis: Any) -> None:
    answer = Envelope("answerCallbackQuery", {"callback_query_id": "9"}, bot=BOT, id="a")
    await file(redis, encode(answer))
    assert await cancelled(redis, "a") == Cancelled("cancelled")
    await at_rest(redis)


async def test_a_delayed_one_among_many_that_are_due_together(redis: Any) -> None:
    await file(redis, *(message(n % 3, f"a:{n}", not_before=DUE) for n in range(500)))
    for n in (0, 499, 250, 251, 249):
        assert await cancelled(redis, f"a:{n}") == Cancelled("cancelled")
        assert await cancelled(redis, f"a:{n}") == Cancelled("ended")
    left = await redis.zrange(f"{QUEUE}:delayed:{BOT}", 0, -1)
    assert len(left) == 495
    assert not [member for member in left if b'"a:250"' in member]


async def test_a_delayed_one_that_has_entered_its_lane(redis: Any) -> None:
    await file(redis, message(1, "a", not_before=DUE))
    (member,) = await redis.zrange(f"{QUEUE}:delayed:{BOT}", 0, -1)
    await redis.zadd(f"{QUEUE}:delayed:{BOT}", {member: 1})
    (claim,) = await turn(redis)
    assert await cancelled(redis, "a") == Cancelled("sending")
    await turn(redis, [end(claim, "again", 60_000, "attempts", "answered:502")], 0)
    assert await cancelled(redis, "a") == Cancelled("cancelled")
    await at_rest(redis)


async def test_a_head_that_is_out_is_not_touched_and_those_behind_it_can_be(redis: Any) -> None:
    elements = [message(1, f"a:{n}") for n in range(3)]
    await file(redis, *elements)
    (claim,) = await turn(redis)
    assert await cancelled(redis, "a:0") == Cancelled("sending")
    assert await cancelled(redis, "a:1") == Cancelled("cancelled")
    assert await queue_of(redis, 1) == [elements[0], elements[2]]
    await at_rest(redis)
    await turn(redis, [end(claim, "sent", 0, "", "")], 0)
    assert await queue_of(redis, 1) == [elements[2]]
    assert await cancelled(redis, "a:0") == Cancelled("ended")


async def test_the_next_one_need_not_wait_for_the_retry_of_a_cancelled_head(redis: Any) -> None:
    await file(redis, message(1, "a"), message(1, "b"))
    (claim,) = await turn(redis)
    await turn(redis, [end(claim, "again", 60_000, "doubts", "doubt:TimeoutError")], 0)
    assert await turn(redis) == []
    assert await cancelled(redis, "a") == Cancelled("cancelled", in_doubt=True)
    assert await redis.hlen(f"{QUEUE}:heads") == 0
    (claim,) = await turn(redis)
    assert claim[4].endswith(message(1, "b"))


async def test_a_flood_still_binds_the_chat(redis: Any) -> None:
    await file(redis, message(1, "a"), message(1, "b"))
    (claim,) = await turn(redis)
    await turn(redis, [end(claim, "flood", 60_000, "", "answered:429")], 0)
    assert await cancelled(redis, "a") == Cancelled("cancelled")
    assert await turn(redis) == []
    await at_rest(redis)


async def test_what_is_not_there(redis: Any) -> None:
    await file(redis, message(1, "a"))
    assert await cancelled(redis, "b") == Cancelled("unknown")
    assert await cancelled(redis, "a", OTHER) == Cancelled("unknown")
    await bury(redis, [message(2, "c")])
    assert await cancelled(redis, "c") == Cancelled("ended")
    await redis.flushall()
    assert await cancelled(redis, "a") == Cancelled("unknown")


async def test_from_a_long_lane_in_parts(redis: Any) -> None:
    await file(redis, *(message(1, f"a:{n}") for n in range(3000)))
    assert await cancelled(redis, "a:2") == Cancelled("cancelled")
    assert len(await queue_of(redis, 1)) == 2999
    await at_rest(redis)


async def test_cancels_at_once_while_a_worker_claims(redis: Any) -> None:
    """Each message is either claimed or cancelled, and none is both."""
    await file(redis, *(message(n % 5, f"a:{n}") for n in range(200)))
    sent: list[bytes] = []

    async def work() -> None:
        while claims := await turn(redis, slots=3):
            sent.extend(claim[4].partition(b"\n")[2] for claim in claims)
            await turn(redis, [end(claim, "sent", 0, "", "") for claim in claims], 0)

    outcomes = asyncio.gather(*(cancelled(redis, f"a:{n}") for n in range(0, 200, 4)))
    await asyncio.gather(work(), outcomes)
    done = zip(range(0, 200, 4), outcomes.result(), strict=True)
    gone = {message(n % 5, f"a:{n}") for n, one in done if one.outcome == "cancelled"}
    assert gone
    assert not gone & set(sent)
    assert len(sent) + len(gone) == 200
    await at_rest(redis)
    assert await redis.hget(f"{QUEUE}:numbers", "cancel") == str(len(gone)).encode()


async def test_it_is_audited_and_takes_its_file_along(redis: Any) -> None:
    await redis.set(f"{QUEUE}:file:own", b"1")
    await file(redis, message(1, "a", method="sendPhoto", files={"f": File("own", once=True)}))
    assert await cancelled(redis, "a") == Cancelled("cancelled")
    assert await redis.exists(f"{QUEUE}:file:own") == 0
    (row,) = await audited(Scripts(redis, QUEUE), 10)
    assert (row.by, row.action, row.bot_id, row.id, row.number) == ("anna", "cancel", BOT, "a", None)
    assert row.lane == lane_of(1).removeprefix(f"{QUEUE}:lane:")
