"""When the outbox is relayed, on an inbox in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from pillarbox.errors import QueueUnavailable
from pillarbox.ids import BotId, RowId
from pillarbox.inbox import OutboxRow
from pillarbox.outbound.lanes import Filed, Filing
from pillarbox_dispatcher import metrics
from pillarbox_dispatcher.relay import Relay
from tests.support.memory_inbox import MemoryInbox


class Filings:
    """Stands where the lanes are; remembers what came, and fails as often as it is told to."""

    def __init__(self) -> None:
        self.came: list[str | None] = []
        self.fails: list[Exception] = []
        self.repeats = 0

    async def file(self, filings: Sequence[Filing]) -> Filed:
        if self.fails:
            raise self.fails.pop()
        self.came += [filing.id for filing in filings]
        return Filed(len(filings) - self.repeats, self.repeats)


def row(number: int, n: int = 0) -> OutboxRow:
    return OutboxRow(BotId(42), "chat:5", RowId(number), n, b"{}")


@asynccontextmanager
async def relaying(
    inbox: MemoryInbox, filings: Filings, *, every: float, limit: int = 500
) -> AsyncIterator[Relay]:
    relay = Relay(inbox, filings, limit=limit, every=every)
    task = asyncio.create_task(relay.run())
    yield relay
    task.cancel()
    await asyncio.wait({task})


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(2):
        while not reached():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def test_a_ring_relays_at_once_under_ids_that_name_the_update() -> None:
    inbox, filings = MemoryInbox(), Filings()
    async with relaying(inbox, filings, every=60) as relay:
        await asyncio.sleep(0.01)
        inbox.outbox += [row(7), row(7, 1)]
        relay.ring()
        await until(lambda: not inbox.outbox)
    assert filings.came == ["42:7:0", "42:7:1"]


async def test_what_others_left_is_found_without_a_ring() -> None:
    inbox, filings = MemoryInbox(), Filings()
    async with relaying(inbox, filings, every=0.02):
        inbox.outbox.append(row(7))
        await until(lambda: not inbox.outbox)


async def test_more_than_one_batch_is_relayed_for_one_ring() -> None:
    inbox, filings = MemoryInbox(), Filings()
    async with relaying(inbox, filings, every=60, limit=10) as relay:
        inbox.outbox += [row(n) for n in range(35)]
        relay.ring()
        await until(lambda: not inbox.outbox)
    assert filings.came == [f"42:{n}:0" for n in range(35)]


async def test_outages_and_bugs_are_tried_again_and_nothing_is_lost() -> None:
    inbox, filings = MemoryInbox(), Filings()
    filings.fails = [RuntimeError("a bug"), QueueUnavailable("away"), QueueUnavailable("away")]
    async with relaying(inbox, filings, every=60) as relay:
        inbox.outbox.append(row(7))
        relay.ring()
        await until(lambda: filings.came == ["42:7:0"])
    assert inbox.outbox == []


async def test_what_the_queue_had_already_is_counted_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    inbox, filings = MemoryInbox(), Filings()
    before, relayed = metrics.relay_repeats._value.get(), metrics.relayed._value.get()
    filings.repeats = 1
    inbox.outbox += [row(7), row(8)]
    await Relay(inbox, filings).drain()
    assert (metrics.relay_repeats._value.get(), metrics.relayed._value.get()) == (before + 1, relayed + 1)
    assert "rows=1" in capsys.readouterr().out
