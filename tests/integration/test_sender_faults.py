"""Senders that are killed, paused and stopped, and Redis too: nothing is lost, one copy more at most."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from pillarbox.ids import BotId
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox_simulator import Running
from pillarbox_simulator.ledger import Query
from pillarbox_solo.valkey import ValkeyServer
from tests.support.sending import QUEUE, SenderProcess, dead, message, senders, until, waiting
from tests.support.servers import running
from tests.support.simulator import BOT_ID
from tests.support.simulator_client import SimulatorClient

Make = Callable[..., SenderProcess]


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path / "valkey")
    with running(server):
        yield server


@pytest.fixture
async def redis(valkey: ValkeyServer) -> AsyncIterator["Redis"]:
    client = Redis.from_url(valkey.url)
    yield client
    await client.aclose()


@pytest.fixture
def make(valkey: ValkeyServer, simulator: Running, tmp_path: Path) -> Make:
    def sender(name: str, **settings: str) -> SenderProcess:
        return SenderProcess(valkey.url, simulator.url, tmp_path, name, **settings)

    return sender


async def texts(control: SimulatorClient) -> list[str]:
    return [str(call["params"]["text"]) for call in await control.effects()]


async def idle(redis: Any) -> bool:
    try:
        return await waiting(redis) == 0
    except RedisError:
        return False


async def up(redis: Any, name: str) -> None:
    await until(lambda: redis.exists(f"{QUEUE}:heartbeat:{name}"))


async def test_killed_after_the_take_and_before_the_filing(
    redis: Any, control: SimulatorClient, make: Make
) -> None:
    """What another worker left in its list is filed first, in order, and the list is forgotten."""
    await redis.rpush(f"{QUEUE}:processing:gone", *(message(1, str(n)) for n in range(300)))
    await redis.sadd(f"{QUEUE}:lists", "gone")
    await redis.rpush(QUEUE, *(message(1, str(n)) for n in range(300, 400)))
    async with senders([make("one")]):
        assert await control.settle(400, 40)
        assert await texts(control) == [str(n) for n in range(400)]
    assert await redis.smembers(f"{QUEUE}:lists") == {b"one"}


async def test_an_element_that_ends_the_process_each_time_is_dead_the_fourth_time(
    redis: Any, control: SimulatorClient, make: Make
) -> None:
    await redis.rpush(f"{QUEUE}:processing:gone", message(1, "poison"), message(1, "good"))
    await redis.sadd(f"{QUEUE}:lists", "gone")
    await redis.hset(f"{QUEUE}:lease", "recoveries", "3")
    async with senders([make("one")]):
        assert await control.settle(1, 20)
        assert await texts(control) == ["good"]
    assert [item["reason"] for item in await dead(redis, "-")] == ["poison"]


async def test_killed_during_a_send(redis: Any, control: SimulatorClient, make: Make) -> None:
    """One is sent when it is killed, and took effect: one copy more. One is held: it is dead, in doubt."""
    await control.faults([{"kind": "hang_after", "times": 2}])
    one, two = make("one"), make("two")
    async with senders([one]):
        await redis.rpush(QUEUE, message(1, "a"), message(1, "b"), message(2, "held", on_doubt="hold"))
        await until(lambda: sends(control, 2))
        await one.kill()
        async with senders([two]):
            assert await control.settle(4, 40)
            assert await until(lambda: idle(redis))
            found = await texts(control)
    assert Counter(found) == {"a": 2, "b": 1, "held": 1}
    assert [text for text in found if text != "held"] == ["a", "a", "b"]
    assert [(item["reason"], item["attempts"]) for item in await dead(redis)] == [("doubt", 1)]


async def sends(control: SimulatorClient, count: int) -> bool:
    return len(await control.ledger(method="sendMessage")) >= count


async def test_killed_after_the_answer_and_before_the_record(
    valkey: ValkeyServer, redis: Any, simulator: Running, control: SimulatorClient, make: Make
) -> None:
    """Redis stands still while calls are answered, so that no end of them is recorded before the kill."""
    await redis.rpush(QUEUE, *(message(n + 1, str(n)) for n in range(4000)))
    one, two = make("one"), make("two")
    async with senders([one]):
        assert await simulator.simulator.ledger.wait(Query(method="sendMessage"), 50, 20)
        assert valkey.pid is not None
        os.kill(valkey.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(0.5)
            await one.kill()
        finally:
            os.kill(valkey.pid, signal.SIGCONT)
        assert await sending(redis)
        async with senders([two]):
            await until(lambda: idle(redis), 40)
            counts = Counter(await texts(control))
    assert len(counts) == 4000
    assert set(counts.values()) <= {1, 2}
    assert sum(counts.values()) - 4000 <= 50
    assert await dead(redis) == []


async def sending(redis: Any) -> bool:
    for incarnation in await redis.hgetall(f"{QUEUE}:workers"):
        if await redis.hlen(f"{QUEUE}:claims:{incarnation.decode()}"):
            return True
    return False


async def test_redis_is_killed_under_load(
    valkey: ValkeyServer, redis: Any, control: SimulatorClient, make: Make
) -> None:
    for n in range(2000):
        await redis.rpush(QUEUE, message(n % 40 + 1, str(n)))
    async with senders([make("one"), make("two")]):
        await until(lambda: sends(control, 300))
        valkey.kill()
        await asyncio.sleep(1)
        valkey.start()
        await until(lambda: idle(redis), 60)
        found = await texts(control)
    counts = Counter(found)
    assert len(counts) == 2000
    assert max(counts.values()) <= 2
    assert sum(counts.values()) - 2000 <= 100
    firsts = list(dict.fromkeys(found))
    for chat in range(40):
        mine = [int(text) for text in firsts if int(text) % 40 == chat]
        assert mine == sorted(mine)


async def test_a_door_s_holder_that_was_paused_comes_back(
    redis: Any, control: SimulatorClient, make: Make
) -> None:
    one, two = make("one"), make("two")
    async with senders([one]):
        await up(redis, "one")
        await redis.rpush(QUEUE, message(1, "0"))
        assert await control.settle(1, 10)
        one.send_signal(signal.SIGSTOP)
        async with senders([two]):
            await up(redis, "two")
            await redis.rpush(QUEUE, *(message(1, str(n)) for n in range(1, 50)))
            assert await control.settle(50, 40)
            one.send_signal(signal.SIGCONT)
            for n in range(50, 150):
                await redis.rpush(QUEUE, message(1, str(n)))
            assert await control.settle(150, 40)
            assert await until(lambda: idle(redis))
            assert await texts(control) == [str(n) for n in range(150)]
            assert await two.stop() == 0
        await redis.rpush(QUEUE, message(1, "150"))
        assert await control.settle(151, 30)


async def test_an_idle_worker_is_killed(redis: Any, control: SimulatorClient, make: Make) -> None:
    """What is handed to it is not popped: it goes to the other one long before the heartbeat lapses."""
    async with senders([make("one"), make("two")]) as (one, _):
        await until(lambda: offered(redis, 2))
        await one.kill()
        for n in range(30):
            await lanes(redis).file([filing(n % 5 + 1, n)])
            await asyncio.sleep(0.02)
        assert await control.settle(30, 5)
        assert sorted(await texts(control), key=int) == [str(n) for n in range(30)]
        assert not await redis.exists(f"{QUEUE}:heads")


async def test_an_idle_worker_was_paused_and_lets_go_of_what_was_taken_over(
    redis: Any, control: SimulatorClient, make: Make
) -> None:
    one, two = make("one"), make("two")
    async with senders([one]):
        await until(lambda: offered(redis, 1))
        one.send_signal(signal.SIGSTOP)
        await lanes(redis).file([filing(chat, chat) for chat in (1, 2, 3)])
        async with senders([two]):
            assert await control.settle(3, 30)
            one.send_signal(signal.SIGCONT)
            await until(lambda: offered(redis, 2))
            await lanes(redis).file([filing(chat, chat) for chat in (4, 5, 6)])
            assert await control.settle(6, 10)
            assert await until(lambda: idle(redis))
    assert sorted(await texts(control)) == ["1", "2", "3", "4", "5", "6"]


def lanes(redis: "Redis") -> Lanes:
    return Lanes(redis, QUEUE)


def filing(chat: int, text: int) -> Filing:
    return Filing(message(chat, str(text)).encode(), BotId(BOT_ID))


async def offered(redis: Any, workers: int) -> bool:
    return len(await redis.keys(f"{QUEUE}:offer:*")) == workers


async def test_a_clean_stop_ends_what_is_being_sent(redis: Any, control: SimulatorClient, make: Make) -> None:
    await control.faults([{"kind": "hang", "times": 5, "seconds": 2}])
    one = make("one")
    async with senders([one]):
        await redis.rpush(
            QUEUE, *(message(n, str(n)) for n in range(1, 6)), *(message(1, "x") for _ in range(50))
        )
        await until(lambda: sends(control, 5))
        assert await one.stop(10) == 0
    assert await waiting(redis) + len(set(await texts(control))) >= 50
    assert not await sending(redis)
    assert await redis.hlen(f"{QUEUE}:workers") == 0
    assert await redis.llen(f"{QUEUE}:processing:one") == 0


async def test_what_a_stop_cuts_off_is_in_doubt(redis: Any, control: SimulatorClient, make: Make) -> None:
    await control.faults([{"kind": "hang"}])
    one = make("one", SEND_TIMEOUT="4", STOP_TIMEOUT="4.5")
    async with senders([one]):
        await redis.rpush(QUEUE, message(1, "a"), message(2, "b", on_doubt="drop"))
        await until(lambda: sends(control, 2))
        one_more = asyncio.create_task(control.faults([]))
        assert await one.stop(10) == 0
        await one_more
    (found,) = await dead(redis)
    assert (found["reason"], found["detail"]) == ("doubt", "drop")
    assert (await redis.hget(f"{QUEUE}:heads", "700001:interactive:1")).startswith(b"0 0 1 doubt")


async def test_a_name_whose_heartbeat_lives_gets_a_suffix(redis: Any, make: Make, tmp_path: Path) -> None:
    async with senders([make("same")]):
        await up(redis, "same")
        async with senders([make("same")]):
            await up(redis, "same-2")


async def test_starts_without_redis_and_goes_on_when_it_comes(
    valkey: ValkeyServer, redis: Any, control: SimulatorClient, make: Make
) -> None:
    await redis.rpush(QUEUE, message(1, "a"))
    valkey.kill()
    async with senders([make("one")]) as (one,):
        await until(lambda: answers(one, 503))
        valkey.start()
        assert await control.settle(1, 20)
        await until(lambda: answers(one, 200))


async def answers(one: SenderProcess, status: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
    except OSError:
        return False
    writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.startswith(f"HTTP/1.1 {status}".encode()) and (status == 200 or b'"redis"' in answer)


async def test_a_stop_while_redis_answers_nothing_keeps_its_time(
    redis: Any, valkey: ValkeyServer, control: SimulatorClient, make: Make
) -> None:
    """With sends that hang too: what is cut is in doubt, and the next start takes it over."""
    sender = make("one", STOP_TIMEOUT="4", SEND_TIMEOUT="3.5")
    async with senders([sender]):
        await up(redis, "one")
        await control.faults([{"kind": "hang_after", "method": "sendMessage", "seconds": 60}])
        await redis.rpush(QUEUE, message(1, "a"), message(2, "b"))
        await until(lambda: sends(control, 2))
        assert valkey.pid is not None
        os.kill(valkey.pid, signal.SIGSTOP)
        try:
            assert await sender.stop(4 + 5) == 0
        finally:
            os.kill(valkey.pid, signal.SIGCONT)
        await control.faults([])
        await sender.start()
        await until(lambda: idle(redis), seconds=40)
    assert set(await texts(control)) == {"a", "b"}


async def test_a_stop_is_short_when_nothing_can_be_recorded(
    redis: Any, valkey: ValkeyServer, control: SimulatorClient, make: Make
) -> None:
    sender = make("one", REDIS_TIMEOUT="2")
    async with senders([sender]):
        await up(redis, "one")
        await control.faults([{"kind": "slow", "method": "sendMessage", "seconds": 1.5}])
        await redis.rpush(QUEUE, message(1, "a"))
        await until(lambda: sends(control, 1))
        valkey.kill()
        assert await sender.stop(20) == 0


@pytest.mark.parametrize("key", [QUEUE, f"{QUEUE}:bulk", f"{QUEUE}:lists", f"{QUEUE}:bell:{BOT_ID}"])
async def test_a_key_of_a_wrong_type_is_said_once_and_tried_ever_less_often(
    redis: Any, control: SimulatorClient, make: Make, key: str
) -> None:
    sender = make("one", LOG_FORMAT="json", BLPOP_TIMEOUT="0.5")
    await redis.set(key, "x")
    async with senders([sender]):
        await up(redis, "one")
        await asyncio.sleep(3)
        said = [json.loads(line) for line in sender.log.read_text().splitlines()]
        assert len([line for line in said if line["level"] == "warning" and "error" in line]) == 1
        await redis.delete(key)
        await redis.rpush(QUEUE, message(1, "a"))
        await until(lambda: sends(control, 1))
        await until(lambda: _says(sender, " again"))


async def _says(sender: SenderProcess, words: str) -> bool:
    return words in sender.log.read_text()
