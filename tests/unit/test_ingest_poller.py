"""What is asked of Telegram after which answer, with a Telegram that answers as told."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox.hold import Hold, Work
from pillarbox_ingest.bot_api import Refused
from pillarbox_ingest.poller import Poller

BOT = BotId(7)
Said = bytes | Exception


def answer(*ids: int) -> bytes:
    updates = [{"update_id": number, "message": {"chat": {"id": 1}}} for number in ids]
    return json.dumps({"ok": True, "result": updates}).encode()


class Telegram:
    """Says one thing after the other; then the stop comes."""

    def __init__(self, stop: asyncio.Event, *said: Said) -> None:
        self._stop = stop
        self._said = list(said)
        self.asked: list[tuple[int | None, int]] = []

    async def __call__(self, method: str, parameters: dict[str, Any], timeout: float) -> bytes:
        self.asked.append((parameters.get("offset"), parameters["limit"]))
        if not self._said:
            self._stop.set()
            return answer()
        said = self._said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


class Store:
    limit = 100

    def __init__(self, *fails: bool) -> None:
        self._fails = list(fails)
        self.taken: list[bytes] = []

    async def take(self, bot_id: BotId, bodies: Sequence[bytes]) -> None:
        if self._fails and self._fails.pop(0):
            raise StorageUnavailable("away")
        self.taken += bodies


async def forever(name: str, work: Work) -> None:
    await work(Hold(1e9, 0.0))


async def polled(
    *said: Said, store: Store | None = None, while_alone: Callable[[str, Work], Any] = forever
) -> list[int | None]:
    """The offsets that were sent."""
    stop = asyncio.Event()
    telegram = Telegram(stop, *said)
    poller = Poller(BOT, telegram, store or Store(), while_alone, stop, timeout=50)
    async with asyncio.timeout(10):
        await poller.run()
    return [offset for offset, limit in telegram.asked if limit == 100]


async def test_fewer_than_the_limit_is_not_the_end_and_an_offset_lives_for_one_call() -> None:
    assert await polled(answer(5, 6, 7), answer(8), answer(), answer()) == [None, 8, 9, None, None]


async def test_ids_that_jump_down_move_the_offset_down() -> None:
    assert await polled(answer(900), answer(3)) == [None, 901, 4]


async def test_an_offset_is_kept_until_a_call_with_it_was_answered() -> None:
    assert await polled(answer(5), Refused("TimeoutError"), answer()) == [None, 6, 6, None]


async def test_what_was_not_stored_is_asked_for_again() -> None:
    store = Store(False, True)
    assert await polled(answer(5), answer(6), answer(6), store=store) == [None, 6, None, 7]
    assert len(store.taken) == 2


async def test_an_id_that_would_make_an_offset_of_0_or_less_is_never_confirmed() -> None:
    """A negative offset makes Telegram forget what waits."""
    stop = asyncio.Event()
    telegram = Telegram(stop, answer(-9, -5))
    poller = Poller(BOT, telegram, Store(), forever, stop, timeout=50)
    running = asyncio.create_task(poller.run())
    await asyncio.sleep(0.1)
    assert telegram.asked == [(None, 100)]
    stop.set()
    await running
    assert telegram.asked == [(None, 100)]


async def test_who_lost_the_hold_asks_no_more() -> None:
    now = 0.0
    holds: list[Hold] = []

    async def losing(name: str, work: Work) -> None:
        holds.append(Hold(3.0, now, lambda: now))
        await work(holds[-1])

    class Slow(Store):
        async def take(self, bot_id: BotId, bodies: Sequence[bytes]) -> None:
            nonlocal now
            now += 4.0  # as a process that was paused
            await super().take(bot_id, bodies)

    assert await polled(answer(5), answer(5), store=Slow(), while_alone=losing) == [None, None, None]
    assert len(holds) == 3
