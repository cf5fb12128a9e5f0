"""Claims for idle workers that are made where a message is filed, script by script, on a real Valkey."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.keys import Keys
from pillarbox.outbound.lanes import Filed, Filing, Lanes, LeaseLost, Source
from pillarbox_sender.turn import Asked, Claim, End, Handed, Turn, Turns, read_handed
from pillarbox_sender.worker import Worker

QUEUE = "q"
BOT, OTHER = BotId(7), BotId(8)
KEYS = Keys(QUEUE)


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def lanes(redis: Any) -> Lanes:
    return Lanes(redis, QUEUE)


class Idle:
    """A worker that has entered, without anything that runs."""

    def __init__(self, redis: Any, lanes: Lanes, name: str) -> None:
        self._redis, self.lanes = redis, lanes
        self.worker = Worker(lanes, name, lambda: 0.0, [BOT])
        self.turns = Turns(lanes, [BOT], 100)
        self._serial = 0

    @property
    def incarnation(self) -> str:
        return self.worker.identity.incarnation

    @property
    def hand(self) -> str:
        return KEYS.hand(self.incarnation)

    async def turn(self, *ends: End, slots: int = 8, offer: int = 8) -> Turn:
        self._serial += 1
        return await self.turns.turn(self.worker.identity, ends, Asked(slots, str(self._serial), offer))

    async def held(self) -> list[Handed]:
        return [read_handed(element) for element in await self._redis.lrange(self.hand, 0, -1)]

    async def pop(self) -> list[Handed]:
        held = await self.held()
        await self._redis.delete(self.hand)
        return held

    async def claims(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = await self._redis.hgetall(KEYS.claims(self.incarnation))
        return found


async def idle(redis: Any, lanes: Lanes, name: str = "one", offer: int = 8) -> Idle:
    one = Idle(redis, lanes, name)
    await one.worker.enter()
    assert (await one.turn(slots=offer, offer=offer)).offered == offer
    return one


def filing(chat: int, text: str = "a", bot: BotId = BOT, **more: object) -> Filing:
    return Filing(encode(Envelope("sendMessage", {"chat_id": chat, "text": text}, bot=bot, **more)))  # type: ignore[arg-type]


def chats(claims: list[Claim]) -> list[str]:
    return [claim.lane.chat for claim in claims]


def lanes_of(handed: list[Handed]) -> list[str]:
    return chats([one.claim for one in handed])


async def ready(redis: Any) -> list[bytes]:
    return sorted(await redis.zrange(f"{QUEUE}:ready:7:interactive", 0, -1))


async def rung(redis: Any, bot: BotId = BOT) -> bool:
    return bool(await redis.exists(KEYS.bell(bot)))


async def test_what_is_filed_is_claimed_for_an_idle_worker(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes)
    filed = await lanes.file([filing(1, "hi")])
    assert (filed, filed.rung) == (Filed(1), 0)
    (handed,) = await one.held()
    assert handed.serial == "1"
    assert handed.claim.owner == one.incarnation
    assert handed.claim.element == filing(1, "hi").element
    assert await one.claims() == {b"7:interactive:1": handed.claim.token.encode()}
    assert await ready(redis) == []
    assert not await rung(redis)
    turn = await one.turn(End(handed.claim, "sent"))
    assert turn.lost == frozenset()
    assert not await redis.exists(f"{QUEUE}:lane:7:interactive:1")


async def test_without_an_idle_worker_the_bell_is_rung(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes)
    await one.turn(offer=0)
    filed = await lanes.file([filing(1), filing(2)])
    assert filed.rung == 1
    assert await one.held() == []
    assert await ready(redis) == [b"1", b"2"]
    assert await rung(redis)


async def test_an_offer_is_used_up_and_the_rest_waits_in_order(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes, offer=3)
    assert (await lanes.file([filing(1, "a"), filing(1, "b"), filing(2)])).rung == 0
    assert lanes_of(await one.held()) == ["1", "2"]
    filed = await lanes.file([filing(chat) for chat in range(3, 259)])
    assert filed.rung == 1
    assert lanes_of(await one.pop())[:2] == ["1", "2"]
    assert len(await ready(redis)) == 255
    turn = await one.turn(slots=4)
    assert turn.withdrawn == ("1", 0)
    assert (len(turn.claims), turn.handed, turn.offered) == (4, [], 0)


async def test_a_second_message_of_a_chat_is_not_handed_while_the_first_is_out(
    redis: Any, lanes: Lanes
) -> None:
    one, two = await idle(redis, lanes), await idle(redis, lanes, "two")
    await lanes.file([filing(1, "first")])
    assert (await lanes.file([filing(1, "second")])).rung == 0
    (handed,) = await one.held() + await two.held()
    assert b"first" in handed.claim.element
    owner = one if handed.claim.owner == one.incarnation else two
    (second,) = (await owner.turn(End(handed.claim, "sent"))).claims
    assert b"second" in second.element


async def test_the_offers_of_two_workers_are_used(redis: Any, lanes: Lanes) -> None:
    one, two = await idle(redis, lanes, offer=2), await idle(redis, lanes, "two", offer=2)
    assert (await lanes.file([filing(chat) for chat in range(1, 6)])).rung == 1
    assert sorted(lanes_of(await one.held() + await two.held())) == ["1", "2", "3", "4"]
    assert len(await one.held()) == len(await two.held()) == 2


async def test_the_rules_of_a_turn_hold(redis: Any, lanes: Lanes) -> None:
    """Blocked chats wait, answers go first, and what is due longer goes before what is filed now."""
    one = await idle(redis, lanes, offer=2)
    seconds, _ = await redis.time()
    await redis.hset(f"{QUEUE}:blocked:7", "1", (seconds + 60) * 1000)
    assert (await lanes.file([filing(1)])).rung == 1
    assert await one.held() == []
    answer = Filing(encode(Envelope("answerCallbackQuery", {"callback_query_id": "x"}, bot=BOT)))
    assert (await lanes.file([filing(2), filing(3), answer])).rung == 1
    assert lanes_of(await one.held()) == ["query:x", "2"]
    assert await redis.zscore(f"{QUEUE}:ready:7:interactive", "1") > seconds * 1000 + 50_000


@pytest.mark.parametrize(
    ("kind", "left", "handed"),
    [
        ("flood", 60, False),
        ("flood", -1, True),
        ("outage", 60, False),
        ("outage", -1, False),
        ("token", -1, False),
        ("trial", -1, False),
    ],
)
async def test_a_paused_bot(redis: Any, lanes: Lanes, kind: str, left: int, handed: bool) -> None:
    one = await idle(redis, lanes)
    seconds, _ = await redis.time()
    pause = {"kind": kind, "until": (seconds + left) * 1000, "tries": 0}
    await redis.hset(f"{QUEUE}:pause:7", mapping=pause)
    assert (await lanes.file([filing(1)])).rung == (not handed)
    assert bool(await one.held()) == handed
    assert await redis.hget(f"{QUEUE}:pause:7", "tries") == (None if handed else b"0")


async def test_other_bots_and_later_messages_ring(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes)
    seconds, _ = await redis.time()
    filed = await lanes.file([filing(1, bot=OTHER), filing(2, not_before=seconds + 60.0), filing(3)])
    assert filed.rung == 2
    assert await rung(redis)
    assert await rung(redis, OTHER)
    assert lanes_of(await one.held()) == ["3"]


async def test_a_dead_idle_worker_is_passed_over(redis: Any, lanes: Lanes) -> None:
    dead, one = await idle(redis, lanes, "dead"), await idle(redis, lanes)
    await redis.delete(f"{QUEUE}:heartbeat:dead")
    for chat in range(1, 9):
        assert (await lanes.file([filing(chat)])).rung == 0
    assert len(await one.held()) == 8
    assert await dead.held() == []
    assert (await lanes.file([filing(9)])).rung == 1


async def test_a_worker_that_pops_nothing_is_passed_over_and_its_hand_goes_to_another(
    redis: Any, lanes: Lanes
) -> None:
    deaf = await idle(redis, lanes, "deaf", offer=2)
    await lanes.file([filing(1)])
    await asyncio.sleep(0.15)
    assert (await lanes.file([filing(2)])).rung == 1
    assert await deaf.held() == []
    assert await deaf.claims() == {}
    one = await idle_after(redis, lanes)
    assert chats(one.claims) == ["1", "2"]
    turn = await deaf.turn()
    assert turn.withdrawn == ("1", 2)


async def idle_after(redis: Any, lanes: Lanes) -> Turn:
    one = Idle(redis, lanes, "one")
    await one.worker.enter()
    return await one.turn()


async def test_the_beat_of_another_worker_takes_back_what_is_not_popped(redis: Any, lanes: Lanes) -> None:
    deaf, one = await idle(redis, lanes, "deaf"), Idle(redis, lanes, "one")
    await one.worker.enter()
    await lanes.file([filing(1)])
    await one.worker.beat()
    assert lanes_of(await deaf.held()) == ["1"]
    await asyncio.sleep(0.15)
    await one.worker.beat()
    assert await deaf.held() == []
    assert await rung(redis)
    assert await ready(redis) == [b"1"]
    assert not await redis.hexists(f"{QUEUE}:heads", "7:interactive:1")


async def test_a_turn_withdraws_and_uses_the_offer_and_brings_what_was_not_popped(
    redis: Any, lanes: Lanes
) -> None:
    one = await idle(redis, lanes, offer=3)
    await lanes.file([filing(1)])
    turn = await one.turn(slots=0, offer=8)
    assert (turn.withdrawn, lanes_of(turn.handed), turn.slots, turn.offered) == (("1", 2), ["1"], 2, 2)
    await redis.zadd(f"{QUEUE}:ready:7:interactive", {"5": 0, "6": 0})
    await redis.rpush(f"{QUEUE}:lane:7:interactive:5", b"1\t1\tresend\t\nx")
    await redis.rpush(f"{QUEUE}:lane:7:interactive:6", b"2\t1\tresend\t\nx")
    turn = await one.turn(slots=0, offer=8)
    assert (turn.withdrawn, chats(turn.claims), turn.offered) == (("2", 2), ["5", "6"], 0)


async def test_a_stopping_worker_withdraws_and_claims_nothing(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes, offer=1)
    await lanes.file([filing(1), filing(2)])
    await redis.delete(KEYS.bell(BOT))
    turn = await one.turn(slots=0, offer=0)
    assert (turn.withdrawn, lanes_of(turn.handed), turn.claims) == (("1", 0), ["1"], [])
    assert await rung(redis)
    await redis.delete(KEYS.bell(BOT))
    await one.turn(End(turn.handed[0].claim, "again"), slots=0, offer=0)
    assert await ready(redis) == [b"1", b"2"]
    assert await rung(redis)
    await one.worker.leave()
    assert await left_over(redis) == []


async def left_over(redis: Any) -> list[bytes]:
    """Keys of workers."""
    kinds = ("workers", "heartbeat", "claims", "idle", "offer", "hand")
    return sorted([key for kind in kinds for key in await redis.keys(f"{QUEUE}:{kind}*")])


async def test_takeover_knows_what_was_popped(redis: Any, lanes: Lanes) -> None:
    """What lay in the hand was never begun; what was popped may have been sent."""
    one = await idle(redis, lanes)
    await lanes.file([filing(1)])
    await one.pop()
    await lanes.file([filing(2), filing(3, on_doubt="drop")])
    await redis.delete(f"{QUEUE}:heartbeat:one")
    assert await lanes.scripts.call("takeover", 100) == [1, 1, 0]
    heads = await redis.hgetall(f"{QUEUE}:heads")
    assert {lane: state[:5] for lane, state in heads.items()} == {b"7:interactive:1": b"0 0 1"}
    assert await ready(redis) == [b"1", b"2", b"3"]
    assert await left_over(redis) == [f"{QUEUE}:idle:7".encode()]
    assert await rung(redis)
    assert 0 < await redis.pttl(f"{QUEUE}:idle:7") <= 60_000


async def test_restore_gives_back_what_was_popped_too_and_hands_nothing_after(
    redis: Any, lanes: Lanes
) -> None:
    one = await idle(redis, lanes)
    await lanes.file([filing(1)])
    (known,) = await one.pop()
    await lanes.file([filing(2)])
    await one.pop()
    await lanes.file([filing(3)])
    assert await one.turns.restore(one.worker.identity, [known.claim.token]) == 1
    assert await one.held() == []
    assert list(await one.claims()) == [b"7:interactive:1"]
    assert await ready(redis) == [b"2", b"3"]
    assert (await lanes.file([filing(4)])).rung == 1
    assert await one.held() == []


async def test_leaving_gives_back(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes)
    await lanes.file([filing(1)])
    await one.worker.leave()
    assert await left_over(redis) == []
    assert await ready(redis) == [b"1"]
    assert await rung(redis)


async def test_a_door_that_lost_its_lease_hands_nothing(redis: Any, lanes: Lanes) -> None:
    one = await idle(redis, lanes)
    with pytest.raises(LeaseLost):
        await lanes.file([filing(1)], Source("list", "lease", 3))
    assert await one.held() == []


async def test_an_old_offer_is_passed_over(redis: Any, lanes: Lanes) -> None:
    """Its worker would have no time left to begin."""
    one = await idle(redis, lanes)
    seconds, _ = await redis.time()
    await redis.hset(f"{QUEUE}:offer:{one.incarnation}", "at", (seconds - 9) * 1000)
    assert (await lanes.file([filing(1)])).rung == 1
    assert await one.held() == []
