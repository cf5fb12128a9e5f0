"""Sender and Bell in this process, on a real Valkey: what a worker is handed is sent once or given back."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from pillarbox.errors import QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.connection import connect
from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.keys import Keys
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox.said import Said
from pillarbox.settings import RedisSettings
from pillarbox_sender import metrics
from pillarbox_sender.bell import Bell
from pillarbox_sender.blocking import Blocking
from pillarbox_sender.bot_api import Answer, BotApi, Outcome
from pillarbox_sender.sender import Sender
from pillarbox_sender.turn import Asked, Turn, Turns
from pillarbox_sender.worker import Identity, Worker
from tests.support.sending import until

QUEUE = "q"
BOT = BotId(7)
KEYS = Keys(QUEUE)
Popped = tuple[bytes, list[bytes]] | None


class Calls(BotApi):
    """Answers when `gate` is open."""

    def __init__(self) -> None:
        super().__init__("http://nowhere.invalid", {}, timeout=1, concurrency=1)
        self.begun: list[tuple[int, str]] = []
        self.out = self.most_out = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def call(self, bot: BotId, method: str, params: Mapping[str, object] | None = None) -> Outcome:
        assert params is not None
        self.begun.append((int(str(params["chat_id"])), str(params["text"])))
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        await asyncio.sleep(0.001)
        await self.gate.wait()
        self.out -= 1
        return Answer(200, Said(ok=True))


class HeldBell(Bell):
    """Its pops can be kept back, or lost, on their way to the worker."""

    open: asyncio.Event
    popped = 0
    lose = False

    async def _pop(self, blocking: Blocking, keys: list[str]) -> Popped:
        popped = await super()._pop(blocking, keys)
        if popped is not None and popped[0] == keys[0].encode():
            self.popped += len(popped[1])
            if self.lose:
                self.lose = False
                raise QueueUnavailable("lost")
            await self.open.wait()
        return popped


class HeldTurns(Turns):
    open: asyncio.Event
    held = 0
    answered = 0

    async def turn(self, identity: Identity, ends: Any, asked: Asked) -> Turn:
        turn = await super().turn(identity, ends, asked)
        self.held += 1
        await self.open.wait()
        self.held -= 1
        self.answered += 1
        return turn


class Station:
    """A worker that runs here; `shift` moves its clock."""

    def __init__(self, redis: Any, settings: RedisSettings, name: str, slots: int) -> None:
        self.redis, self.shift = redis, 0.0
        self.lanes = Lanes(redis, QUEUE)
        self.worker = Worker(self.lanes, name, self.clock, [BOT])
        self.calls = Calls()
        blocking = partial(connect, settings, blocking=True)
        bells = [KEYS.bell(BOT)]
        self.bell = HeldBell(redis, blocking, lambda: KEYS.hand(self.incarnation), bells, 2.0)
        self.turns = HeldTurns(self.lanes, [BOT], 100)
        self.bell.open, self.turns.open = asyncio.Event(), asyncio.Event()
        self.bell.open.set()
        self.turns.open.set()
        self.stop = asyncio.Event()
        self.sender = Sender(
            self.turns,
            self.worker,
            self.calls,
            self.bell,
            slots=slots,
            max_retries=3,
            clock=self.clock,
        )

    def clock(self) -> float:
        return time.monotonic() + self.shift

    @property
    def incarnation(self) -> str:
        return self.worker.identity.incarnation

    async def run(self) -> None:
        await self.worker.enter()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.bell.run(self.stop, self.sender))
            group.create_task(self._end_pop())
            await self.sender.run(self.stop, 5)
        await self.worker.leave()

    async def _end_pop(self) -> None:
        await self.stop.wait()
        await self.bell.end()

    async def idle(self) -> None:
        """Listens, and offers slots."""
        await until(lambda: self.redis.exists(f"{QUEUE}:offer:{self.incarnation}"), step=0.01)
        await until(self._blocks, step=0.01)

    async def offer(self) -> bytes | None:
        return cast("bytes | None", await self.redis.hget(f"{QUEUE}:offer:{self.incarnation}", "serial"))

    async def offers_since(self, before: bytes | None) -> bool:
        return await self.offer() not in (None, before)

    async def _blocks(self) -> bool:
        return bool(await blocked(self.redis))

    async def file(self, chat: int, text: str) -> int:
        element = encode(Envelope("sendMessage", {"chat_id": chat, "text": text}, bot=BOT))
        return (await self.lanes.file([Filing(element)])).rung


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey_url)
    yield client
    await client.aclose()


Start = Callable[..., Any]


@asynccontextmanager
async def started(redis: Any, url: str, name: str = "one", slots: int = 10) -> AsyncIterator[Station]:
    one = Station(redis, RedisSettings(redis_url=SecretStr(url)), name, slots)
    running = asyncio.create_task(one.run())
    try:
        await until(lambda: _true(bool(one.incarnation)), step=0.01)
        await one.idle()
        yield one
    finally:
        one.stop.set()
        one.bell.open.set()
        one.turns.open.set()
        one.calls.gate.set()
        async with asyncio.timeout(15):
            await running


@pytest.fixture
def station(redis: Any, valkey_url: str) -> Start:
    return partial(started, redis, valkey_url)


async def _true(value: bool) -> bool:
    return value


async def settled(redis: Any) -> bool:
    depth = await redis.hgetall(f"{QUEUE}:depth:{BOT}")
    return all(int(count) == 0 for count in depth.values())


async def workers_keys(redis: Any) -> list[bytes]:
    kinds = ("workers", "heartbeat", "claims", "idle", "offer", "hand")
    return sorted([key for kind in kinds for key in await redis.keys(f"{QUEUE}:{kind}*")])


def handed() -> float:
    return float(metrics.HANDED._value.get())


async def test_what_is_filed_is_handed_and_sent(redis: Any, station: Start) -> None:
    before = handed()
    async with station() as one:
        for n in range(30):
            assert await one.file(n % 3, str(n)) == 0
            await until(lambda: settled(redis), step=0.005)
            await one.idle()
        assert handed() - before == 30
    assert one.calls.begun == [(n % 3, str(n)) for n in range(30)]
    assert await workers_keys(redis) == []


@pytest.mark.parametrize("slots", [1, 2, 9, 50])
async def test_slots_are_never_exceeded_and_chats_keep_their_order(
    redis: Any, station: Start, slots: int
) -> None:
    chance = random.Random(slots)
    async with station(slots=slots) as one, station("two", slots) as two:
        for n in range(600):
            await one.file(chance.randrange(12), str(n))
            if chance.random() < 0.2:
                await asyncio.sleep(chance.random() * 0.01)
        await until(lambda: settled(redis), step=0.01)
        begun = one.calls.begun + two.calls.begun
        assert max(one.calls.most_out, two.calls.most_out) <= slots
        assert not await redis.exists(*(KEYS.claims(worker.incarnation) for worker in (one, two)))
        for worker in (one, two):
            await worker.idle()
            assert worker.sender._free + worker.sender._offers.slots == slots
    assert Counter(text for _, text in begun) == Counter(str(n) for n in range(600))
    for worker in (one, two):
        for chat in range(12):
            mine = [int(text) for at, text in worker.calls.begun if at == chat]
            assert mine == sorted(mine)


async def test_handed_while_a_turn_is_out_it_is_sent_at_once(redis: Any, station: Start) -> None:
    async with station() as one:
        one.turns.open.clear()
        one.sender.wake()
        await until(lambda: _true(one.turns.held == 1), step=0.005)
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.calls.begun == [(1, "a")]), step=0.005)
        assert one.turns.held == 1
        one.turns.open.set()
        await until(lambda: settled(redis))
        await one.idle()
        assert one.sender._free + one.sender._offers.slots == 10


async def test_what_the_bell_does_not_pop_comes_with_the_next_turn(redis: Any, station: Start) -> None:
    async with station() as one:
        await deaf(redis, one)
        assert await one.file(1, "a") == 0
        assert await redis.llen(KEYS.hand(one.incarnation)) == 1
        one.sender.wake()
        await until(lambda: settled(redis))
    assert one.calls.begun == [(1, "a")]


async def _not(true: Callable[[], Any]) -> bool:
    return not await true()


async def blocked(redis: Any) -> list[str]:
    """Connections that are blocked by a pop."""
    return [str(client["id"]) for client in await redis.client_list() if "b" in client["flags"]]


async def deaf(redis: Any, one: Station) -> None:
    """It offers slots, and its pop has ended."""
    one.bell.listen(False)
    for client in await blocked(redis):
        await redis.client_unblock(client)
    await until(lambda: _not(one._blocks), step=0.005)


async def test_a_pop_that_is_lost_is_given_back_without_a_doubt(redis: Any, station: Start) -> None:
    async with station() as one:
        one.bell.lose = True
        assert await one.file(1, "a") == 0
        await until(lambda: settled(redis))
        assert one.bell.popped >= 1
        await one.idle()
        assert await one.file(1, "b") == 0
        await until(lambda: settled(redis))
    assert one.calls.begun == [(1, "a"), (1, "b")]
    assert await redis.keys(f"{QUEUE}:dead*") == []


async def test_a_broken_connection_loses_and_doubles_nothing(redis: Any, station: Start) -> None:
    async with station() as one:
        for n in range(200):
            await one.file(n, str(n))
            if n % 20 == 10:
                for client in await blocked(redis):
                    await redis.client_kill_filter(_id=client)
            await asyncio.sleep(0.002)
        await until(lambda: settled(redis))
    assert sorted(one.calls.begun) == [(n, str(n)) for n in range(200)]


async def test_a_hand_that_comes_too_late_is_not_sent(redis: Any, station: Start) -> None:
    """Nobody took it over meanwhile: it is given back, and sent after a new claim."""
    async with station() as one:
        one.bell.open.clear()
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.bell.popped == 1), step=0.005)
        one.shift = 9.5
        ends = one.turns.answered
        one.bell.open.set()
        await until(lambda: settled(redis))
        assert one.turns.answered >= ends + 2
    assert one.calls.begun == [(1, "a")]


async def test_a_hand_that_was_taken_over_is_not_sent(redis: Any, station: Start) -> None:
    """Also where the worker's heart beats again before the hand comes."""
    async with station() as one:
        one.bell.open.clear()
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.bell.popped == 1), step=0.005)
        await redis.delete(f"{QUEUE}:heartbeat:one")
        assert await one.lanes.scripts.call("takeover", 100) == [1, 1, 0]
        async with station_of(one, "two") as two:
            await until(lambda: _true(two.calls.begun == [(1, "a")]))
            await until(lambda: settled(redis))
        await one.worker.beat()
        one.sender.wake()
        await until(lambda: redis.exists(f"{QUEUE}:offer:{one.incarnation}"))
        one.bell.open.set()
        await one.idle()
        await one.file(2, "b")
        await until(lambda: settled(redis))
    assert one.calls.begun == [(2, "b")]


@asynccontextmanager
async def station_of(other: Station, name: str) -> AsyncIterator[Station]:
    """A second worker that does not wait to be idle: something waits for it."""
    two = Station(other.redis, RedisSettings(redis_url=SecretStr(url_of(other.redis))), name, 10)
    running = asyncio.create_task(two.run())
    try:
        yield two
    finally:
        two.stop.set()
        await running


def url_of(redis: Any) -> str:
    at = redis.connection_pool.connection_kwargs
    return f"redis://{at['host']}:{at['port']}/{at.get('db', 0)}"


async def test_a_hand_of_before_a_restore_is_not_sent(redis: Any, station: Start) -> None:
    """What was restored is another claim's now; the hand that is on its way still is void."""
    async with station() as one:
        one.bell.open.clear()
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.bell.popped == 1), step=0.005)
        one.sender.unheard()
        await until(lambda: settled(redis))
        assert one.calls.begun == [(1, "a")]
        one.bell.open.set()
        await one.idle()
        await one.file(1, "b")
        await until(lambda: settled(redis))
    assert one.calls.begun == [(1, "a"), (1, "b")]


async def test_a_pop_that_is_lost_after_one_during_a_restore_is_given_back(
    redis: Any, station: Start
) -> None:
    async with station() as one:
        restoring, restored = one.turns.restore, asyncio.Event()

        async def restore(identity: Identity, known: Any) -> int:
            one.turns.restore = restoring
            await restored.wait()
            return int(await restoring(identity, known))

        one.turns.restore = restore
        one.sender.unheard()
        await until(lambda: _true(one.turns.restore is not restore), step=0.005)
        one.sender.unheard()
        before = await one.offer()
        restored.set()
        await until(lambda: one.offers_since(before), step=0.01)
        one.bell.lose = True
        assert await one.file(1, "a") == 0
        await until(lambda: settled(redis))
        assert one.bell.popped >= 1
    assert one.calls.begun == [(1, "a")]


@asynccontextmanager
async def halved(valkey_url: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """A way to Redis, and what ends its connections so that Redis sees nothing of it."""
    at = urlsplit(valkey_url)
    ours: list[asyncio.StreamWriter] = []
    theirs: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not writer.is_closing():
                writer.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, calls = await asyncio.open_connection(at.hostname, at.port)
        ours.append(writer)
        theirs.append(calls)
        with suppress(ConnectionError):
            await asyncio.gather(pass_on(reader, calls), pass_on(answers, writer))

    def cut() -> None:
        for writer in ours:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}{at.path}", cut
    finally:
        for writer in (*ours, *theirs):
            writer.close()
        server.close()


async def test_what_redis_gives_to_a_connection_of_before_is_not_lost(redis: Any, valkey_url: str) -> None:
    """It may think for as long as a pop blocks that a worker listens there which has gone another way."""
    async with halved(valkey_url) as (url, cut), started(redis, url) as one:
        before = await one.offer()
        cut()
        await until(lambda: one.offers_since(before), step=0.01)
        await asyncio.sleep(0.1)
        assert await one.file(1, "a") == 0
        await until(lambda: settled(redis))
    assert one.calls.begun == [(1, "a")]


async def test_stopped_while_the_hand_is_on_its_way(redis: Any, station: Start) -> None:
    async with station() as one:
        one.bell.open.clear()
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.bell.popped == 1), step=0.005)
        one.stop.set()
        await asyncio.sleep(0.2)
        one.bell.open.set()
    await given_back(redis, one)


async def test_stopped_while_the_hand_is_not_popped(redis: Any, station: Start) -> None:
    async with station() as one:
        await deaf(redis, one)
        assert await one.file(1, "a") == 0
        one.stop.set()
    await given_back(redis, one)


async def test_stopped_when_the_pop_is_lost(redis: Any, station: Start) -> None:
    async with station() as one:
        one.turns.open.clear()
        one.sender.wake()
        await until(lambda: _true(one.turns.held == 1), step=0.005)
        one.bell.lose = True
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.bell.popped == 1), step=0.005)
        one.stop.set()
        one.turns.open.set()
    await given_back(redis, one)


async def given_back(redis: Any, one: Station) -> None:
    """Without a doubt, to whoever hears the bell; and of the worker nothing is left."""
    assert one.calls.begun == []
    assert await workers_keys(redis) == []
    assert await redis.zrange(f"{QUEUE}:ready:7:interactive", 0, -1) == [b"1"]
    assert not await redis.exists(f"{QUEUE}:heads")
    assert await redis.exists(KEYS.bell(BOT))


async def test_stopped_while_a_handed_message_is_sent(redis: Any, station: Start) -> None:
    async with station() as one:
        one.calls.gate.clear()
        assert await one.file(1, "a") == 0
        await until(lambda: _true(one.calls.out == 1), step=0.005)
        one.stop.set()
        await asyncio.sleep(0.1)
        one.calls.gate.set()
    assert one.calls.begun == [(1, "a")]
    assert await settled(redis)
    assert await workers_keys(redis) == []


async def test_idle_and_stopped_it_leaves_nothing(redis: Any, station: Start) -> None:
    async with station():
        pass
    assert await workers_keys(redis) == []
