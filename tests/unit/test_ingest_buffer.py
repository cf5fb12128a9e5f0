"""The buffer: what is shared, what is given up, and what is too much."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox.errors import StorageUnavailable
from pillarbox.inbox import Accepted, Incoming
from pillarbox_ingest.buffer import MOST_BYTES, MOST_UPDATES, Buffer
from tests.support.inbox import incoming


class Store:
    """Answers when it is let; keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()
        self.errors: list[Exception] = []

    async def accept(self, batch: Sequence[Incoming]) -> list[Accepted]:
        self.batches.append([update.update_id for update in batch])
        await self.open.wait()
        if self.errors:
            raise self.errors.pop()
        return [Accepted.NEW] * len(batch)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_batches_are_what_gathered_meanwhile() -> None:
    store = Store()
    buffer = Buffer(store.accept, Clock())
    run = asyncio.create_task(buffer.run())
    puts = []
    for number in range(700):
        puts.append(asyncio.create_task(buffer.put(incoming(number))))
        if number == 0:
            await settle()
    store.open.set()
    assert set(await asyncio.gather(*puts)) == {Accepted.NEW}
    assert [len(batch) for batch in store.batches] == [1, MOST_UPDATES, 199]
    assert [number for batch in store.batches for number in batch] == list(range(700))
    run.cancel()


async def test_a_repeat_shares_the_commit() -> None:
    store = Store()
    buffer = Buffer(store.accept, Clock())
    run = asyncio.create_task(buffer.run())
    puts = [asyncio.create_task(buffer.put(incoming(n, body=b"%d" % b))) for n, b in ((1, 0), (1, 0), (1, 1))]
    await settle()
    puts.append(asyncio.create_task(buffer.put(incoming(1, body=b"0"))))
    await settle()
    store.open.set()
    assert await asyncio.gather(*puts) == [Accepted.NEW, Accepted.REPEAT, Accepted.NEW, Accepted.REPEAT]
    assert sum(map(len, store.batches)) == 2
    run.cancel()


async def test_a_batch_is_bounded_by_bytes() -> None:
    store = Store()
    store.open.set()
    buffer = Buffer(store.accept, Clock())
    body = bytes(MOST_BYTES // 2 - 1)
    puts = [asyncio.create_task(buffer.put(incoming(n, body=body))) for n in range(4)]
    await settle()
    run = asyncio.create_task(buffer.run())
    await asyncio.gather(*puts)
    assert store.batches == [[0, 1], [2, 3]]
    run.cancel()


async def test_too_much_is_refused_at_once() -> None:
    store = Store()
    buffer = Buffer(store.accept, Clock(), most_waiting=1000)
    run = asyncio.create_task(buffer.run())
    puts = [asyncio.create_task(buffer.put(incoming(n, body=bytes(600)))) for n in range(2)]
    await settle()
    with pytest.raises(StorageUnavailable):
        await buffer.put(incoming(3))
    store.open.set()
    await asyncio.gather(*puts)
    assert await buffer.put(incoming(3)) is Accepted.NEW
    run.cancel()


@pytest.mark.parametrize("error", [StorageUnavailable("away"), ValueError("a bug")])
async def test_an_error_is_its_batchs_alone(error: Exception) -> None:
    store = Store()
    store.open.set()
    store.errors.append(error)
    buffer = Buffer(store.accept, Clock())
    run = asyncio.create_task(buffer.run())
    with pytest.raises(StorageUnavailable):
        await buffer.put(incoming(1))
    assert await buffer.put(incoming(1)) is Accepted.NEW
    run.cancel()


async def test_what_waits_too_long_is_given_up_and_not_stored_later() -> None:
    store, clock = Store(), Clock()
    buffer = Buffer(store.accept, clock, patience=0.2)
    run = asyncio.create_task(buffer.run())
    puts = [asyncio.create_task(buffer.put(incoming(0)))]
    await settle()
    puts += [asyncio.create_task(buffer.put(incoming(n))) for n in range(1, 4)]
    await settle()
    clock.now += 1
    answers = await asyncio.gather(*puts, return_exceptions=True)
    assert all(isinstance(answer, StorageUnavailable) for answer in answers)
    store.open.set()
    assert await buffer.put(incoming(9)) is Accepted.NEW
    assert store.batches == [[0], [9]]
    run.cancel()
