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
from pillarbox_dispatcher.early import MOST_BYTES, Early
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


async def test_what_the_queue_had_already_is_counted() -> None:
    inbox, filings = MemoryInbox(), Filings()
    before, relayed = metrics.relay_repeats._value.get(), metrics.relayed._value.get()
    filings.repeats = 1
    inbox.outbox += [row(7), row(8)]
    await Relay(inbox, filings).drain()
    assert (metrics.relay_repeats._value.get(), metrics.relayed._value.get()) == (before + 1, relayed + 1)


async def test_what_was_filed_early_leaves_the_outbox_and_is_filed_no_second_time() -> None:
    inbox, filings = MemoryInbox(), Filings()
    async with relaying(inbox, filings, every=60) as relay:
        inbox.outbox += [row(7), row(7, 1), row(8)]
        relay.filed([row(7), row(7, 1)])
        await until(lambda: not inbox.outbox)
    assert filings.came == ["42:8:0"]


async def test_what_is_known_to_be_filed_is_forgotten_when_it_has_left() -> None:
    inbox, filings = MemoryInbox(), Filings()
    relay = Relay(inbox, filings)
    relay.filed([row(7)])
    for _ in range(2):
        await relay.drain()
    inbox.outbox.append(row(7))
    await relay.drain()
    assert filings.came == ["42:7:0"]


async def test_of_a_backlog_only_the_last_batches_are_remembered() -> None:
    inbox, filings = MemoryInbox(), Filings()
    relay = Relay(inbox, filings, limit=10)
    inbox.outbox += [row(n) for n in range(35)]
    await relay.drain()
    inbox.outbox.append(row(7))
    await relay.drain()
    assert filings.came[35:] == ["42:7:0"]


@asynccontextmanager
async def filing_early(filings: Filings) -> AsyncIterator[tuple[Early, list[list[str]]]]:
    """And what its listener was told."""
    told: list[list[str]] = []
    early = Early(filings, lambda rows: told.append([row.id for row in rows]))
    task = asyncio.create_task(early.run())
    yield early, told
    task.cancel()
    await asyncio.wait({task})


async def test_the_foremost_messages_are_filed_from_memory() -> None:
    filings = Filings()
    async with filing_early(filings) as (early, told):
        assert early.take([row(7), row(7, 1)])
        await until(lambda: told == [["42:7:0", "42:7:1"]])
    assert filings.came == ["42:7:0", "42:7:1"]


@pytest.mark.parametrize("error", [QueueUnavailable("away"), RuntimeError("a bug")])
async def test_what_could_not_be_filed_early_is_left_to_the_relay(error: Exception) -> None:
    filings = Filings()
    filings.fails = [error]
    async with filing_early(filings) as (early, told):
        early.take([row(7)])
        await until(lambda: told == [[]])
        early.take([row(8)])
        await until(lambda: told == [[], ["42:8:0"]])
    assert filings.came == ["42:8:0"]


async def test_what_waits_to_be_filed_early_is_bounded() -> None:
    early = Early(Filings(), lambda rows: None)
    big = OutboxRow(BotId(42), "chat:5", RowId(7), 0, bytes(MOST_BYTES))
    assert early.take([big])
    assert not early.take([row(8)])
