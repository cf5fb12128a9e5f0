"""Dead messages under the hands of people while senders send: nothing is doubled, nothing is lost."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.errors import QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.acts import DeadActs
from pillarbox.outbound.cancelling import cancel
from pillarbox.outbound.dead import DeadFilter
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Scripts
from pillarbox_simulator import Running
from pillarbox_solo.valkey import ValkeyServer
from tests.support.sending import QUEUE, SenderProcess, message, senders, until, waiting
from tests.support.servers import running
from tests.support.simulator import BOT_ID
from tests.support.simulator_client import SimulatorClient

ALL = DeadFilter()
CHATS = 20
Make = Callable[..., SenderProcess]


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path / "valkey")
    with running(server):
        yield server


@pytest.fixture
async def redis(valkey: ValkeyServer) -> AsyncIterator["Redis"]:
    async with Redis.from_url(valkey.url) as client:
        yield client


@pytest.fixture
def acts(redis: "Redis") -> DeadActs:
    return DeadActs(Scripts(redis, QUEUE), Reader())


@pytest.fixture
def make(valkey: ValkeyServer, simulator: Running, tmp_path: Path) -> Make:
    def sender(name: str, **settings: str) -> SenderProcess:
        return SenderProcess(valkey.url, simulator.url, tmp_path, name, **settings)

    return sender


async def all_die(redis: Any, control: SimulatorClient, number: int) -> None:
    """Pushed, refused and dead; after that the Bot API takes everything."""
    await control.faults([{"kind": "403"}])
    await redis.rpush(QUEUE, *(message(n % CHATS + 1, str(n), id=f"a:{n}") for n in range(number)))

    async def dead() -> bool:
        return int(await redis.zcard(f"{QUEUE}:dead:{BOT_ID}")) == number

    await until(dead, 40)
    await control.faults([])


async def texts(control: SimulatorClient) -> list[str]:
    return [str(call["params"]["text"]) for call in await control.effects()]


async def nothing_waits(redis: Any) -> bool:
    return await waiting(redis) == 0 and await redis.zcard(f"{QUEUE}:dead:{BOT_ID}") == 0


async def test_everything_is_retried_while_workers_send_and_one_dies(
    redis: Any, acts: DeadActs, control: SimulatorClient, make: Make
) -> None:
    async with senders([make("one"), make("two")]) as (one, _):
        await all_die(redis, control, 600)

        async def kill() -> None:
            await until(lambda: control.settle(100, 0, 0.01))
            await one.kill()

        retries = (acts.retry(ALL, "anna"), acts.retry(ALL, "ben"), acts.retry(range(600, 0, -1), "eve"))
        *moved, _ = await asyncio.gather(*retries, kill())
        assert sum(one.moved for one in moved) == 600
        await until(lambda: nothing_waits(redis), 40)
        found = await texts(control)
    counts = Counter(found)
    assert set(counts) == {str(n) for n in range(600)}
    assert max(counts.values()) <= 2
    assert sum(counts.values()) - 600 <= 50
    assert await redis.hget(f"{QUEUE}:numbers", "retry") == b"600"


async def test_whoever_retries_is_killed_in_the_middle(
    valkey: ValkeyServer, redis: Any, acts: DeadActs, control: SimulatorClient, make: Make
) -> None:
    async with senders([make("one")]):
        await all_die(redis, control, 1000)
    command = (sys.executable, "-m", "tests.support.retrying", valkey.url, QUEUE)
    left = []
    while await redis.zcard(f"{QUEUE}:dead:{BOT_ID}"):
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        await process.stdout.readline()
        if process.returncode is None:
            process.kill()
        await process.wait()
        left.append(1000 - int(await redis.hget(f"{QUEUE}:numbers", "retry") or 0))
    assert len([number for number in left if 0 < number < 1000]) >= 1
    async with senders([make("one")]):
        await until(lambda: nothing_waits(redis), 40)
        found = await texts(control)
    assert sorted(found) == sorted(str(n) for n in range(1000))
    for chat in range(CHATS):
        mine = [int(text) for text in found if int(text) % CHATS == chat]
        assert mine == sorted(mine)


async def test_redis_is_killed_while_all_is_retried(
    valkey: ValkeyServer, redis: Any, acts: DeadActs, control: SimulatorClient, make: Make
) -> None:
    async with senders([make("one")]):
        await all_die(redis, control, 1000)

    def fall(moved: int) -> None:
        if valkey.alive and moved:
            valkey.kill()

    with pytest.raises(QueueUnavailable):
        await acts.retry(ALL, "anna", progress=fall)
    valkey.start()
    left = await acts.messages.count(ALL)
    assert 0 < left < 1000
    assert (await acts.retry(ALL, "anna")).moved == left
    async with senders([make("one")]):
        await until(lambda: nothing_waits(redis), 40)
        found = await texts(control)
    assert sorted(found) == sorted(str(n) for n in range(1000))


async def test_what_is_cancelled_while_it_is_sent_is_never_both(
    redis: Any, control: SimulatorClient, make: Make
) -> None:
    scripts = Scripts(redis, QUEUE)
    async with senders([make("one"), make("two")]):
        await redis.rpush(QUEUE, *(message(n % 5 + 1, str(n), id=f"a:{n}") for n in range(500)))
        await until(lambda: redis.exists(f"{QUEUE}:id:{BOT_ID}:a:499"))
        outcomes = {
            n: (await cancel(scripts, BotId(BOT_ID), f"a:{n}", "anna")).outcome for n in range(499, 0, -2)
        }
        await until(lambda: nothing_waits(redis), 40)
        found = Counter(await texts(control))
    gone = {str(n) for n, outcome in outcomes.items() if outcome == "cancelled"}
    assert gone
    assert set(found) == {str(n) for n in range(500)} - gone
    assert max(found.values()) == 1
