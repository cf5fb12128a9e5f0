"""Where the storage is not durable, Telegram is told after the handlers and the relay."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import (
    Accepted,
    Failed,
    Finished,
    FsmKey,
    FsmWrite,
    Incoming,
    Later,
    Lease,
    Limits,
    OutboxRow,
    Retried,
    Uncounted,
)
from pillarbox.inbox.memory import MemoryStorage
from pillarbox_ingest.webhook import Put
from pillarbox_solo.confirming import Confirming

LIMITS = Limits(max_handler_runs=1)


def update(number: int) -> Incoming:
    return Incoming(BotId(7), UpdateId(number), "message", f"chat:{number}", b"{%d}" % number, number, None)


class Bot:
    """A storage with what stands before it: `telegram` posts, the rest is the dispatcher's part."""

    def __init__(self, patience: float = 10.0) -> None:
        self.time = 0.0
        self.storage = MemoryStorage(LIMITS, clock=lambda: self.time)
        self.confirming = Confirming(self.storage, patience)
        self.put: Put = self.confirming.confirm(self._put)

    async def _put(self, incoming: Incoming) -> Accepted:
        return (await self.storage.accept([incoming]))[0]

    def telegram(self, number: int) -> "asyncio.Task[Accepted]":
        return asyncio.ensure_future(self.put(update(number)))

    async def lease(self) -> Lease:
        async with asyncio.timeout(5):
            while not (leases := (await self.confirming.turn((), 9)).leases):  # noqa: ASYNC110 - it is what is tested
                await asyncio.sleep(0)
        (lease,) = leases
        return lease

    async def relay(self) -> None:
        async def file(rows: Sequence[OutboxRow]) -> None: ...

        await self.confirming.relay(file, 100)


async def passed() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_it_waits_for_the_end_and_for_the_relay() -> None:
    bot = Bot()
    told = bot.telegram(1)
    lease = await bot.lease()
    await passed()
    assert not told.done()
    await bot.confirming.turn([Finished(lease.token, (b"{}", b"{}"))], 0)
    await passed()
    assert not told.done()
    await bot.relay()
    assert await told is Accepted.NEW
    assert await bot.put(update(1)) is Accepted.REPEAT


async def test_without_an_outbox_the_end_is_enough_and_failed_is_told_too() -> None:
    bot = Bot()
    told = bot.telegram(1)
    await bot.confirming.turn([Finished((await bot.lease()).token)], 0)
    assert await told is Accepted.NEW
    told = bot.telegram(2)
    await bot.confirming.turn([Failed((await bot.lease()).token, "KeyError")], 0)
    assert await told is Accepted.NEW


async def test_one_update_at_a_time() -> None:
    bot = Bot()
    first, second = bot.telegram(1), bot.telegram(2)
    lease = await bot.lease()
    await passed()
    assert (await bot.storage.counts(BotId(7))).pending == 1
    await bot.confirming.turn([Finished(lease.token)], 0)
    await bot.confirming.turn([Finished((await bot.lease()).token)], 0)
    assert [await first, await second] == [Accepted.NEW, Accepted.NEW]


async def test_past_its_patience_it_is_unavailable_and_the_repeat_joins_the_run() -> None:
    bot = Bot(patience=0.05)
    with pytest.raises(StorageUnavailable):
        await bot.put(update(1))
    lease = await bot.lease()
    told = bot.telegram(1)
    await passed()
    assert not told.done()
    await bot.confirming.turn([Finished(lease.token)], 0)
    assert await told is Accepted.REPEAT


async def test_one_that_asked_for_a_later_run_holds_up_no_other() -> None:
    bot = Bot()
    first = bot.telegram(1)
    await bot.confirming.turn([Later((await bot.lease()).token, 60.0)], 0)
    second = bot.telegram(2)
    await bot.confirming.turn([Finished((await bot.lease()).token)], 0)
    assert await second is Accepted.NEW
    assert not first.done()
    bot.confirming.close()
    with pytest.raises(StorageUnavailable):
        await first


async def test_what_the_storage_fails_by_itself_is_told() -> None:
    bot = Bot()
    told = bot.telegram(1)
    await bot.lease()
    bot.time += 2 * LIMITS.lease
    assert (await bot.confirming.turn((), 1)).failed == 1
    assert await told is Accepted.NEW


async def test_it_waits_on_while_the_update_is_to_run_again() -> None:
    bot, key = Bot(), FsmKey(BotId(7), "chat:1")
    told = bot.telegram(1)
    lease = await bot.lease()
    late = Finished(lease.token, (), (FsmWrite(key, 99, "A"),))
    turn = await bot.confirming.turn([Uncounted(lease.token), late], 0)
    assert turn.stale == {lease.token}
    lease = await bot.lease()
    await bot.confirming.turn([Retried(lease.token, "E", 0, 0, 1)], 0)
    lease = await bot.lease()
    await passed()
    assert not told.done()
    turn = await bot.confirming.turn([Retried(lease.token, "E", 0, 0, 1)], 0)
    assert turn.given_up == {lease.token}
    assert await told is Accepted.NEW


async def test_a_stop_refuses_who_waits_for_a_turn_and_lets_the_running_end() -> None:
    bot = Bot()
    first, *others = [bot.telegram(number) for number in range(1, 40)]
    lease = await bot.lease()
    bot.confirming.refuse()
    answers = await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 1)
    assert [type(answer) for answer in answers] == [StorageUnavailable] * 38
    with pytest.raises(StorageUnavailable):
        await bot.telegram(50)
    assert not first.done()
    await bot.confirming.turn([Finished(lease.token)], 0)
    assert await asyncio.wait_for(first, 1) is Accepted.NEW
