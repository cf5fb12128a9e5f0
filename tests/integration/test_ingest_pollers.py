"""Several processes poll one bot: one asks, the others stand by and take over; nothing is lost."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

import pillarbox_simulator
from tests.support.inbox import query
from tests.support.ingest import BOT_ID
from tests.support.polling import TOKEN, PollerProcess, stored, until
from tests.support.simulator_client import SimulatorClient

Make = Callable[[], PollerProcess]
TAKEOVER = 2.0
SILENCE = 3.0


@pytest.fixture
async def telegram() -> AsyncIterator[pillarbox_simulator.Running]:
    async with pillarbox_simulator.running(tokens=[TOKEN]) as running:
        yield running


@pytest.fixture
def control(telegram: pillarbox_simulator.Running, http: aiohttp.ClientSession) -> SimulatorClient:
    return SimulatorClient(telegram.url, http)


@pytest.fixture
async def make(
    postgres_url: str, telegram: pillarbox_simulator.Running, tmp_path: Path
) -> AsyncIterator[Make]:
    made: list[PollerProcess] = []

    def one_more() -> PollerProcess:
        made.append(PollerProcess(postgres_url, telegram.url, tmp_path / f"{len(made)}.log"))
        return made[-1]

    yield one_more
    for process in made:
        if process.process.poll() is None:
            await until(process.listens)
            assert await asyncio.to_thread(process.stop) == 0
        assert TOKEN not in process.log.read_text()


async def two(make: Make) -> tuple[PollerProcess, PollerProcess]:
    """The one that asks, and the one that stands by."""
    asking = make()
    await until(asking.asks)
    standing_by = make()
    await until(standing_by.listens)
    return asking, standing_by


async def the_one_that_asks(pollers: list[PollerProcess]) -> PollerProcess:
    async with asyncio.timeout(20):
        while True:
            for poller in pollers:
                if await poller.asks():
                    return poller
            await asyncio.sleep(0.02)


class Speaker:
    """Users of `chats` chats write, until they are told to stop."""

    def __init__(self, control: SimulatorClient, chats: int = 20) -> None:
        self._control = control
        self._chats = chats
        self._done = asyncio.Event()
        self.said: list[int] = []

    async def run(self) -> None:
        while not self._done.is_set():
            messages = [{"bot_id": BOT_ID, "chat_id": c, "text": "hello"} for c in range(1, self._chats + 1)]
            answers = await self._control.say(messages)
            self.said += [answer["update_id"] for answer in answers]
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        self._done.set()


async def reordered(url: str) -> list[int]:
    """Ids that were accepted behind a later one of their chat."""
    rows = await asyncio.to_thread(query, url, "SELECT lane, update_id FROM updates ORDER BY row_id")
    last: dict[str, int] = defaultdict(int)
    out = []
    for lane, number in rows:
        if number < last[lane]:
            out.append(number)
        last[lane] = max(last[lane], number)
    return out


async def all_stored(url: str, said: list[int]) -> None:
    async def done() -> bool:
        return len(await stored(url)) >= len(said)

    await until(done, 60, 0.1)
    assert sorted(await stored(url)) == sorted(said)
    assert await reordered(url) == []


async def test_kill_9_under_load_loses_and_reorders_nothing(
    postgres_url: str, control: SimulatorClient, make: Make
) -> None:
    pollers = [make(), make()]
    speaker = Speaker(control)
    async with asyncio.TaskGroup() as group:
        group.create_task(speaker.run())
        for number in range(6):
            victim = await the_one_that_asks(pollers)
            await asyncio.sleep(0.1 + number / 20)
            await asyncio.to_thread(victim.kill)
            await asyncio.to_thread(victim.start)
        speaker.stop()
    await all_stored(postgres_url, speaker.said)


async def test_one_asks_and_the_other_takes_over_at_once_when_it_is_killed(make: Make) -> None:
    asking, standing_by = await two(make)
    await asyncio.sleep(1)
    assert await asking.asks()
    assert not await standing_by.asks()
    await asyncio.to_thread(asking.kill)
    took = await until(standing_by.asks)
    print(f"taken over {took:.2f} s after a kill")
    assert took < TAKEOVER


async def test_a_clean_stop_hands_over_at_once(make: Make) -> None:
    asking, standing_by = await two(make)
    stopping = asyncio.create_task(asyncio.to_thread(asking.stop))
    took = await until(standing_by.asks)
    assert await stopping == 0
    assert took < TAKEOVER


async def test_one_that_hangs_loses_its_bot_and_does_not_ask_again(
    postgres_url: str, control: SimulatorClient, make: Make
) -> None:
    asking, standing_by = await two(make)
    speaker = Speaker(control)
    async with asyncio.TaskGroup() as group:
        group.create_task(speaker.run())
        await asyncio.sleep(0.3)
        asking.signal(signal.SIGSTOP)
        took = await until(standing_by.asks)
        print(f"taken over {took:.2f} s after a SIGSTOP")
        assert took < SILENCE + TAKEOVER
        asking.signal(signal.SIGCONT)
        await until(lambda: gave_up(asking))
        await asyncio.sleep(1)
        assert await standing_by.asks()
        assert not await asking.asks()
        assert "no updates come" not in asking.log.read_text()
        speaker.stop()
    await all_stored(postgres_url, speaker.said)


async def gave_up(poller: PollerProcess) -> bool:
    return not await poller.asks()
