"""The limits, script by script, on a real Valkey: scaled, since Redis's clock is the only one that counts."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox_sender.turn import Asked, Claim, End, Turn, Turns, read_handed
from pillarbox_sender.worker import Worker

QUEUE, BOT = "q", BotId(7)
OFF = {"chat": 0, "chat_burst": 1, "group": 0, "group_ms": 60_000, "bulk": 0, "paid": 0, "bot": 0}
GROUP, CHAT = -100, 42


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


class Sending:
    """Workers that have entered, under these limits; time passes by itself."""

    def __init__(self, redis: Any) -> None:
        self.redis, self.lanes = redis, Lanes(redis, QUEUE)
        self.turns = Turns(self.lanes, [BOT], 100)
        self.workers: dict[str, Worker] = {}
        self._serial = 0

    async def enter(self, name: str, **limits: float) -> None:
        packed = msgspec.msgpack.encode({**OFF, **limits})
        self.workers[name] = Worker(self.lanes, name, lambda: 0.0, [BOT], packed)
        await self.workers[name].enter()

    async def file(self, chat: object, count: int = 1, *, bulk: bool = False, **params: object) -> None:
        one = Filing(encode(_say(chat, **params)), bulk=bulk)
        await self.lanes.file([one] * count)

    async def call(self, method: str, **params: object) -> None:
        await self.lanes.file([Filing(encode(Envelope(method, params, bot=BOT)))])

    async def turn(self, *ends: End, slots: int = 100, offer: int = 0, by: str = "one") -> Turn:
        self._serial += 1
        asked = Asked(slots, str(self._serial), offer)
        return await self.turns.turn(self.workers[by].identity, ends, asked)

    async def let_go(self, most: int = 100) -> int:
        """Claims and ends until nothing more may go now."""
        gone = 0
        ends: list[End] = []
        while gone < most:
            turn = await self.turn(*ends)
            ends = [End(claim, "sent") for claim in turn.claims]
            gone += len(ends)
            if not ends:
                return gone
        return gone


def _say(chat: object, **params: object) -> Envelope:
    return Envelope("sendMessage", {"chat_id": chat, "text": "x", **params}, bot=BOT)


def chats(claims: Sequence[Claim]) -> list[str]:
    return sorted(claim.lane.chat for claim in claims)


@pytest.fixture
async def sending(redis: "Redis") -> Sending:
    return Sending(redis)


async def test_a_chat_has_its_burst_and_then_its_rate(sending: Sending) -> None:
    await sending.enter("one", chat=5, chat_burst=3)
    await sending.file(CHAT, 10)
    assert await sending.let_go() == 3
    wait = (await sending.turn()).wait
    assert wait is not None
    assert 0.1 < wait <= 0.2
    await asyncio.sleep(0.2)
    assert await sending.let_go() == 1
    await asyncio.sleep(0.4)
    assert await sending.let_go() == 2


async def test_a_full_chat_holds_no_other(sending: Sending) -> None:
    await sending.enter("one", chat=0.1, chat_burst=1)
    await sending.file(CHAT, 300)
    for chat in range(1000, 1300):
        await sending.file(chat)
    assert await sending.let_go(1000) == 301


async def test_both_classes_and_both_workers_share_a_chat(sending: Sending) -> None:
    await sending.enter("one", chat=1, chat_burst=1)
    await sending.enter("two", chat=1, chat_burst=1)
    await sending.file(CHAT)
    await sending.file(CHAT, bulk=True)
    first = await sending.turn()
    assert len(first.claims) == 1
    assert (await sending.turn(by="two")).claims == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sendChatAction", {"chat_id": CHAT, "action": "typing"}),
        ("deleteMessage", {"chat_id": CHAT, "message_id": 1}),
        ("answerCallbackQuery", {"callback_query_id": "1"}),
    ],
)
async def test_what_nobody_sees_is_free(sending: Sending, method: str, params: dict[str, object]) -> None:
    await sending.enter("one", chat=0.1, chat_burst=1, bot=1000)
    for _ in range(3):
        await sending.call(method, **params)
    await sending.file(CHAT)
    assert await sending.let_go() == 4
    await sending.call(method, **params)
    await sending.file(CHAT)
    assert await sending.let_go() == 1


async def test_a_group_has_its_calls_in_any_window(sending: Sending) -> None:
    await sending.enter("one", group=4, group_ms=1000)
    await sending.file(GROUP, 10)
    await sending.file("@channel", 10)
    assert await sending.let_go() == 8
    await asyncio.sleep(0.5)
    assert await sending.let_go() == 0
    await asyncio.sleep(0.6)
    assert await sending.let_go() == 8


async def test_a_call_that_is_held_counts_from_its_answer(sending: Sending) -> None:
    """It may have had its effect at any time until then."""
    await sending.enter("one", group=2, group_ms=800)
    await sending.file(GROUP, 6)
    (held,) = (await sending.turn()).claims
    await asyncio.sleep(0.9)
    (second,) = (await sending.turn(End(held, "sent"))).claims
    await sending.turn(End(second, "sent"))
    await asyncio.sleep(0.6)
    assert (await sending.turn()).claims == []
    await asyncio.sleep(0.3)
    assert await sending.let_go() == 2


async def test_a_held_call_of_another_class_keeps_its_place(sending: Sending) -> None:
    await sending.enter("one", group=1, group_ms=200)
    await sending.file(GROUP)
    (held,) = (await sending.turn()).claims
    await sending.file(GROUP, bulk=True)
    await asyncio.sleep(0.3)
    assert (await sending.turn()).claims == []
    await sending.turn(End(held, "sent"))
    await asyncio.sleep(0.25)
    assert len((await sending.turn()).claims) == 1


async def test_bulk_has_its_calls_in_any_second_and_replies_go(sending: Sending) -> None:
    await sending.enter("one", bulk=20)
    for chat in range(1, 41):
        await sending.file(chat, bulk=True)
        await sending.file(1000 + chat)
    turn = await sending.turn()
    kinds = [claim.lane.kind for claim in turn.claims]
    assert (kinds.count("bulk"), kinds.count("interactive")) == (2, 40)
    assert turn.wait is not None
    assert 0.02 < turn.wait <= 0.05
    begun = time.monotonic()
    gone: list[float] = []
    while len(gone) < 38:
        ends = [End(claim, "sent") for claim in turn.claims]
        turn = await sending.turn(*ends)
        gone += [time.monotonic() - begun] * len(turn.claims)
        await asyncio.sleep(turn.wait or 0)
    assert max(sum(at <= other < at + 0.99 for other in gone) for at in gone) <= 20
    assert gone[-1] < 2.2


async def test_bulk_that_is_held_counts_until_it_is_answered(sending: Sending) -> None:
    await sending.enter("one", bulk=5)
    held = []
    for chat in range(1, 11):
        await sending.file(chat, bulk=True)
    for _ in range(12):
        held += (await sending.turn()).claims
        await asyncio.sleep(0.1)
    assert len(held) == 5
    await sending.turn(*(End(claim, "sent") for claim in held))
    assert (await sending.turn()).claims == []


async def test_bulk_leaves_the_last_part_of_a_bots_rate(sending: Sending) -> None:
    await sending.enter("one", bot=30)
    for chat in range(1, 21):
        await sending.file(chat, bulk=True)
    assert len((await sending.turn()).claims) == 2
    await sending.file(1000)
    turn = await sending.turn()
    assert [claim.lane.kind for claim in turn.claims] == ["interactive"]
    assert turn.wait is not None
    assert turn.wait > 0


async def test_paid_messages_have_a_rate_of_their_own(sending: Sending) -> None:
    await sending.enter("one", bulk=1, paid=50)
    for chat in range(1, 21):
        await sending.file(chat, bulk=True)
        await sending.file(chat, bulk=True, allow_paid_broadcast=True)
    kinds = [claim.lane.kind for claim in (await sending.turn()).claims]
    assert (kinds.count("bulk"), kinds.count("paid")) == (1, 5)


async def test_what_was_never_sent_counts_nowhere(sending: Sending) -> None:
    limits = {"chat": 0.1, "chat_burst": 1, "group": 1, "bulk": 1, "bot": 10}
    await sending.enter("one", **limits)
    for bulk, chat in ((False, CHAT), (False, GROUP), (True, 43)):
        await sending.file(chat, bulk=bulk)
        for again in ("end", "restore", "end"):
            turn = await sending.turn()
            assert chats(turn.claims) == [str(chat)], (chat, again)
            if again == "restore":
                await sending.turns.restore(sending.workers["one"].identity, [])
            else:
                (claim,) = turn.claims
                await sending.turn(End(claim, "again"), slots=0)
        (claim,) = (await sending.turn()).claims
        await sending.turn(End(claim, "sent"))
        await sending.redis.delete(f"{QUEUE}:pace:7")


async def test_what_lies_in_a_hand_and_goes_back_counts_nowhere(sending: Sending) -> None:
    await sending.enter("one", chat=0.1, chat_burst=1)
    await sending.enter("two", chat=0.1, chat_burst=1)
    await sending.turn(slots=1, offer=1)
    await sending.file(CHAT)
    hand = f"{QUEUE}:hand:{sending.workers['one'].identity.incarnation}"
    (handed,) = [read_handed(one) for one in await sending.redis.lrange(hand, 0, -1)]
    assert handed.claim.lane.chat == str(CHAT)
    await asyncio.sleep(0.15)
    await sending.workers["two"].beat()
    assert chats((await sending.turn(by="two")).claims) == [str(CHAT)]


async def test_a_chat_over_its_rate_is_not_handed(sending: Sending) -> None:
    await sending.enter("one", chat=0.1, chat_burst=1)
    await sending.file(CHAT)
    await sending.let_go()
    await sending.turn(slots=8, offer=8)
    await sending.file(CHAT)
    hand = f"{QUEUE}:hand:{sending.workers['one'].identity.incarnation}"
    assert await sending.redis.lrange(hand, 0, -1) == []
    assert await sending.redis.exists(f"{QUEUE}:bell:7")


async def test_after_a_429_a_chat_goes_slower_for_a_while(sending: Sending) -> None:
    await sending.enter("one", chat=5, chat_burst=1)
    await sending.file(CHAT, 5)
    (claim,) = (await sending.turn()).claims
    await sending.turn(End(claim, "flood", 0.3))
    assert (await sending.turn()).claims == []
    await asyncio.sleep(0.41)
    (claim,) = (await sending.turn()).claims
    wait = (await sending.turn(End(claim, "sent"))).wait
    assert wait is not None
    assert 0.3 < wait <= 0.4
    value = await sending.redis.get(f"{QUEUE}:pace:7:{CHAT}")
    long_ago = b" ".join([*value.split()[:2], b"%d" % (int(value.split()[2]) - 150_000)])
    await sending.redis.set(f"{QUEUE}:pace:7:{CHAT}", long_ago)
    await asyncio.sleep(0.4)
    (claim,) = (await sending.turn()).claims
    wait = (await sending.turn(End(claim, "sent"))).wait
    assert wait is not None
    assert wait <= 0.21


async def test_after_429s_in_three_chats_the_bot_goes_slower(sending: Sending) -> None:
    await sending.enter("one", bulk=10)
    for chat in range(1, 31):
        await sending.file(chat, bulk=True)
    claims = []
    for _ in range(3):
        claims += (await sending.turn()).claims
        await asyncio.sleep(0.11)
    turn = await sending.turn(*[End(claim, "flood", 0.2) for claim in claims])
    assert turn.paused == [(BOT, "flood")]
    assert turn.claims == []
    await asyncio.sleep(0.3)
    turn = await sending.turn()
    assert len(turn.claims) == 1
    assert turn.wait is not None
    assert 0.15 < turn.wait <= 0.2


async def test_what_is_kept_of_limits_expires(sending: Sending) -> None:
    await sending.enter("one", chat=10, chat_burst=3, group=20, group_ms=1000, bulk=30, paid=10, bot=100)
    for chat in range(-50, 50):
        await sending.file(chat, bulk=chat % 2 == 0, allow_paid_broadcast=chat % 4 == 0)
    assert await sending.let_go() > 10
    found = [key async for key in sending.redis.scan_iter(f"{QUEUE}:[pw][ai][cn]*")]
    assert found
    assert all([await sending.redis.pttl(key) > 0 for key in found])
    await asyncio.sleep(1)
    assert [key async for key in sending.redis.scan_iter(f"{QUEUE}:pace:*")] == []


async def test_the_backlog_of_one_bot_does_not_hold_another(sending: Sending) -> None:
    await sending.enter("one", chat=1, chat_burst=3, bot=300)
    other = BotId(8)
    sending.turns = Turns(sending.lanes, [BOT, other], 100)
    for chat in range(1, 101):
        await sending.file(chat)
    await sending.lanes.file(
        [Filing(encode(Envelope("sendMessage", {"chat_id": 1, "text": "x"}, bot=other)))]
    )
    claims = [claim for _ in range(2) for claim in (await sending.turn(slots=10)).claims]
    assert {claim.lane.bot for claim in claims} == {BOT, other}
