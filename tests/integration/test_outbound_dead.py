"""Dead messages on a real Valkey: looked up, retried, edited, discarded."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis as blocking
from redis.asyncio import Redis

from pillarbox.errors import MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.acts import DeadActs, MovedDead
from pillarbox.outbound.audit import audited
from pillarbox.outbound.dead import Dead, DeadFilter
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Scripts
from tests.support.dying import BOT, OTHER, QUEUE, bury, lane_of, queue_of

ALL = DeadFilter()


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    async with Redis.from_url(valkey_url) as redis:
        yield redis


@pytest.fixture
def acts(redis: Any) -> DeadActs:
    return DeadActs(Scripts(redis, QUEUE), Reader(listed=True))


async def listed(acts: DeadActs, matching: DeadFilter = ALL) -> list[Dead]:
    return await acts.messages.page(matching, None, 1000)


async def test_what_is_kept_of_a_dead_message(redis: Any, acts: DeadActs) -> None:
    element = encode(Envelope("sendMessage", {"chat_id": 42, "text": "secret"}, bot=BOT, id="order:1"))
    await bury(redis, [element], reason="refused", errors=("answered:502", "answered:400"))
    (dead,) = await listed(acts)
    assert (dead.bot_id, dead.lane, dead.chat) == (BOT, f"{BOT}:interactive:42", "42")
    assert (dead.id, dead.method, dead.reason) == ("order:1", "sendMessage", "refused")
    assert (dead.first_error, dead.last_error, dead.attempts) == ("answered:502", "answered:400", 2)
    assert (dead.size, dead.element) == (len(element), None)
    found = await acts.messages.find(dead.number)
    assert found is not None
    assert found.element == element
    assert "secret" not in repr(found)


async def test_pages_of_many_that_died_in_one_millisecond(redis: Any, acts: DeadActs) -> None:
    """One script buries many, all at one time: the place is the number then."""
    await Lanes(redis, QUEUE).file([Filing(b"x%d" % n, BotId(BOT + n % 2)) for n in range(1000)])
    seen: list[int] = []
    place = None
    while page := await acts.messages.page(ALL, place, 70):
        seen += [dead.number for dead in page]
        place = page[-1].place
        await acts.discard([dead.number for dead in page[:20]], "anna")
    assert seen == list(range(1000, 0, -1))


@pytest.mark.parametrize(
    ("matching", "expected"),
    [
        (DeadFilter(reason="doubt"), {2, 4}),
        (DeadFilter(method="SENDPHOTO"), {3}),
        (DeadFilter(chat="-100"), {2}),
        (DeadFilter(chat="@News"), {4}),
        (DeadFilter(bot_id=OTHER), {5}),
        (DeadFilter(id="a:1"), {1}),
        (DeadFilter(numbers=(1, 4, 99)), {1, 4}),
        (DeadFilter(numbers=(1, 4), reason="doubt"), {4}),
        (DeadFilter(reason="doubt", chat="1"), set()),
    ],
)
async def test_filters(redis: Any, acts: DeadActs, matching: DeadFilter, expected: set[int]) -> None:
    def message(chat: Any, method: str = "sendMessage", **more: Any) -> bytes:
        return encode(Envelope(method, {"chat_id": chat}, bot=more.pop("bot", BOT), **more))

    await bury(redis, [message(1, id="a:1")], reason="refused")
    await bury(redis, [message(-100)], reason="doubt")
    await bury(redis, [message(1, "sendPhoto")], reason="refused")
    await bury(redis, [message("@News")], reason="doubt")
    await bury(redis, [message(1, bot=OTHER)], reason="refused")
    assert {dead.number for dead in await listed(acts, matching)} == expected
    moved = await acts.discard(matching, "anna")
    assert moved.moved == len(expected)
    assert {dead.number for dead in await listed(acts)} == {1, 2, 3, 4, 5} - expected


async def test_times(redis: Any, acts: DeadActs) -> None:
    await bury(redis, [b'{"method": "x"}'])
    (dead,) = await listed(acts)
    later = dead.died_at + timedelta(milliseconds=1)
    assert await listed(acts, DeadFilter(since=dead.died_at, until=later)) == [dead]
    assert await listed(acts, DeadFilter(since=later)) == []
    assert await listed(acts, DeadFilter(until=dead.died_at)) == []
    with pytest.raises(ValueError, match="time zone"):
        DeadFilter(since=datetime.now(UTC).replace(tzinfo=None))


async def test_a_retried_message_waits_at_the_end_of_its_lane_under_a_fresh_mark(
    redis: Any, acts: DeadActs
) -> None:
    first = encode(Envelope("sendMessage", {"chat_id": 42, "text": "1"}, bot=BOT, id="a"))
    second = encode(Envelope("sendMessage", {"chat_id": 42, "text": "2"}, bot=BOT))
    await bury(redis, [first])
    await Lanes(redis, QUEUE).file([Filing(second)])
    await redis.expire(f"{QUEUE}:id:{BOT}:a", 100)
    assert await acts.retry([1, 7], "anna") == MovedDead(1, (7,))
    lines = [line.partition(b"\n") for line in await redis.lrange(lane_of(42), 0, -1)]
    assert [element for _, _, element in lines] == [second, first]
    numbers = [int(line.split(b"\t")[0]) for line, _, _ in lines]
    assert numbers == sorted(numbers)
    assert lines[1][0].split(b"\t")[2:] == [b"resend", b"a"]
    assert await redis.hget(f"{QUEUE}:depth:{BOT}", "interactive") == b"2"
    assert await redis.zscore(f"{QUEUE}:ready:{BOT}:interactive", "42") is not None
    assert await redis.ttl(f"{QUEUE}:id:{BOT}:a") > 86000
    assert (await Lanes(redis, QUEUE).file([Filing(first)])).repeats == 1
    assert await listed(acts) == []
    assert await acts.retry([1], "anna") == MovedDead(0, (1,))


async def test_retry_by_filter_keeps_the_order_and_leaves_what_is_no_message(
    redis: Any, acts: DeadActs
) -> None:
    elements = [encode(Envelope("sendMessage", {"chat_id": 1, "n": n}, bot=BOT)) for n in range(750)]
    await bury(redis, elements)
    await Lanes(redis, QUEUE).file([Filing(b"nonsense", BOT)])
    heard: list[int] = []
    moved = await acts.retry(ALL, "anna", progress=heard.append)
    assert moved == MovedDead(750, (), (751,))
    assert sum(heard) == 750
    assert max(heard) <= 25
    assert await queue_of(redis, 1) == elements


async def test_two_retries_at_once_double_nothing(redis: Any, acts: DeadActs) -> None:
    elements = [encode(Envelope("sendMessage", {"chat_id": n, "n": n}, bot=BOT)) for n in range(500)]
    await bury(redis, elements)
    numbers = range(1, 501)
    moved = await asyncio.gather(
        acts.retry(ALL, "anna"),
        acts.retry(ALL, "ben"),
        acts.retry(list(numbers), "eve"),
        acts.discard(ALL, "x"),
    )
    retried = [line for n in range(500) for line in await queue_of(redis, n)]
    assert len(retried) == len(set(retried)) == sum(one.moved for one in moved[:3])
    assert sum(one.moved for one in moved) == 500
    assert await listed(acts) == []


async def test_what_can_be_read_by_now_is_sent(redis: Any) -> None:
    """EXTRA_METHODS or MAX_MESSAGE has changed since the element came."""
    element = encode(Envelope("sendHologram", {"chat_id": 5}, bot=BOT))
    strict = Reader(listed=True)
    await Lanes(redis, QUEUE, reader=strict).file([Filing(element), Filing(b"{", BOT)])
    scripts = Scripts(redis, QUEUE)
    await Lanes(redis, QUEUE, reader=strict).file([Filing(element, BOT)])
    assert await DeadActs(scripts, strict).retry(ALL, "anna") == MovedDead(0, (), (1, 2, 3))
    knowing = DeadActs(scripts, Reader(listed=True, extra_methods=frozenset({"sendhologram"})))
    moved = await knowing.retry(ALL, "anna")
    assert moved.moved == 2
    assert await queue_of(redis, 5) == [element, element]


async def test_an_edited_message_goes_out_under_its_own_id(redis: Any, acts: DeadActs) -> None:
    gone = encode(
        Envelope("sendMessage", {"chat_id": 1, "text": "a"}, bot=BOT, id="a", expires_at=1.0, on_doubt="drop")
    )
    await bury(redis, [gone], bulk=True)
    changes = {"params": {"chat_id": 2, "text": "b"}, "expires_at": None}
    assert await acts.edit(1, changes, "anna")
    (line,) = await redis.lrange(f"{QUEUE}:lane:{BOT}:bulk:2", 0, -1)
    head, _, element = line.partition(b"\n")
    assert head.split(b"\t")[2:] == [b"drop", b"a"]
    kept = {"method": "sendMessage", "bot": BOT, "id": "a", "on_doubt": "drop"}
    assert json.loads(element) == kept | {"params": {"chat_id": 2, "text": "b"}}
    assert await redis.get(f"{QUEUE}:id:{BOT}:a") == b"b:2"
    assert not await acts.edit(1, changes, "anna")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "setWebhook"}, "method_refused"),
        ({"method": "sendHologram"}, "method_unknown"),
        ({"params": []}, "params"),
        ({"params": {"photo": "file:///etc/passwd"}}, "file_path"),
        ({"params": {"text": "x" * (1 << 20)}}, "too_big"),
        ({"params": {"text": "\ud800"}}, "params"),
        ({"id": "b"}, "id"),
        ({"bot": int(OTHER)}, "bot"),
        ({"colour": "red"}, "unknown_field"),
        ({"method": None}, "method"),
    ],
)
async def test_an_edit_is_checked_as_a_push_is(
    redis: Any, acts: DeadActs, changes: dict[str, Any], reason: str
) -> None:
    await bury(redis, [encode(Envelope("sendMessage", {"chat_id": 1}, bot=BOT))])
    with pytest.raises(MessageRefused) as refused:
        await acts.edit(1, changes, "anna")
    assert refused.value.reason == reason
    assert [dead.number for dead in await listed(acts)] == [1]


async def test_what_is_no_message_becomes_one(redis: Any, acts: DeadActs) -> None:
    await Lanes(redis, QUEUE).file([Filing(b"nonsense"), Filing(b"more", BOT)])
    whole = {"method": "sendMessage", "params": {"chat_id": 9, "text": "c"}}
    with pytest.raises(MessageRefused, match="names no bot"):
        await acts.edit(1, whole, "anna")
    assert await acts.edit(1, whole | {"bot": int(BOT)}, "anna")
    assert await acts.edit(2, whole | {"not_before": 4e9}, "anna")
    assert len(await queue_of(redis, 9)) == 1
    assert await redis.zcard(f"{QUEUE}:delayed:{BOT}") == 1


async def test_discarded_messages_take_their_files_along(redis: Any, acts: DeadActs) -> None:
    files = {"a": {"id": "own", "once": True}, "b": {"id": "shared"}}
    element = json.dumps({"method": "sendPhoto", "params": {"chat_id": 1}, "files": files}).encode()
    await redis.mset({f"{QUEUE}:file:own": b"1", f"{QUEUE}:file:shared": b"2"})
    await bury(redis, [element])
    assert await acts.discard([1, 2], "anna") == MovedDead(1, (2,))
    assert await redis.exists(f"{QUEUE}:file:own") == 0
    assert await redis.exists(f"{QUEUE}:file:shared") == 1


async def test_acts_are_audited_without_what_is_said(redis: Any, acts: DeadActs) -> None:
    elements = [
        encode(Envelope("sendMessage", {"chat_id": 1, "text": "secret"}, bot=BOT, id=f"a:{n}"))
        for n in range(3)
    ]
    await bury(redis, elements, reason="doubt")
    await acts.retry([1], "anna")
    await acts.edit(2, {"params": {"chat_id": 1, "text": "other secret"}}, "ben")
    await acts.discard(ALL, "eve")
    rows = await audited(Scripts(redis, QUEUE), 10)
    assert [(row.by, row.action, row.number, row.id) for row in rows] == [
        ("eve", "discard", 3, "a:2"), ("ben", "edit", 2, "a:1"), ("anna", "retry", 1, "a:0"),
    ]  # fmt: skip
    assert {(row.bot_id, row.lane, row.reason) for row in rows} == {(BOT, f"{BOT}:interactive:1", "doubt")}
    assert b"secret" not in b"".join(await redis.lrange(f"{QUEUE}:audit", 0, -1))


async def test_all_is_forgotten_in_the_middle(redis: Any, acts: DeadActs, valkey_url: str) -> None:
    """FLUSHALL, also of the scripts: what is left is nothing, and no error."""
    elements = [encode(Envelope("sendMessage", {"chat_id": n}, bot=BOT)) for n in range(300)]
    await bury(redis, elements)
    await redis.script_flush()

    def flush(moved: int) -> None:
        with blocking.Redis.from_url(valkey_url) as other:
            other.flushall()

    moved = await acts.retry(ALL, "anna", progress=flush)
    assert moved == MovedDead(25)
    assert await listed(acts) == []
    assert await acts.retry([5], "anna") == MovedDead(0, (5,))
