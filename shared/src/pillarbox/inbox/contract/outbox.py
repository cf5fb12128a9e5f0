"""Rule 7: the outbox and its relay."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox.inbox.contract.given import BOT, OTHER, SHORT, Filed, Given, case, claimed, update
from pillarbox.inbox.handing import RELAY_BYTES
from pillarbox.inbox.states import Finished, OutboxRow

LARGE = 3 << 20


class Broken(Exception):
    """The queue fell over while it was filed to."""


async def _breaks(rows: Sequence[OutboxRow]) -> None:
    raise Broken


async def _interrupted(given_out: list[OutboxRow], rows: Sequence[OutboxRow]) -> None:
    given_out += rows
    raise Broken


@case(7)
async def what_a_handler_queued_leaves_in_order(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    assert await storage.finish(lease.token, [b"a", b"b", b"c"])
    assert await storage.relay(filed.file, 100) == 3
    assert filed.bodies == [b"a", b"b", b"c"]
    assert [row.id for row in filed.rows] == [f"{BOT}:{lease.row}:{n}" for n in range(3)]
    assert {(row.bot_id, row.lane) for row in filed.rows} == {(BOT, "chat:1")}


@case(7)
async def large_messages_are_handed_on_a_few_at_a_time(given: Given) -> None:
    storage, filed, sizes = await given.storage(), Filed(), list[int]()

    async def file(rows: Sequence[OutboxRow]) -> None:
        sizes.append(sum(len(row.body) for row in rows))
        await filed.file(rows)

    for n in range(3):
        await storage.accept([update(n, n, bot=(BOT, OTHER)[n % 2])])
        (lease,) = await storage.claim(1)
        assert await storage.finish(lease.token, [b"%d" % i * LARGE for i in range(3)])
    assert await storage.relay(file, 100) == 9
    assert (len(filed.rows), sum(sizes)) == (9, 9 * LARGE)
    assert max(sizes) < RELAY_BYTES + LARGE
    assert await storage.relay(file, 100) == 0


@case(7)
async def what_was_relayed_is_forgotten(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    await storage.finish(lease.token, [b"a"])
    assert (await storage.counts(BOT)).outbox == 1
    assert await storage.relay(filed.file, 100) == 1
    assert await storage.relay(filed.file, 100) == 0
    assert (filed.calls, (await storage.counts(BOT)).outbox) == (1, 0)


@case(7)
async def only_who_finished_by_token_queues(given: Given) -> None:
    storage, filed = await given.storage(lease=SHORT), Filed()
    await storage.accept([update(1, 1), update(2, 2)])
    first, _ = await storage.claim(2)
    again = await claimed(storage, 2)
    again += await storage.claim(2 - len(again))
    turn = await storage.turn([Finished(lease.token, (b"new",)) for lease in again], 0)
    late = await storage.turn([Finished(first.token, (b"late",))], 0)
    assert not turn.lost
    assert late.lost == {first.token}
    await storage.relay(filed.file, 100)
    assert filed.bodies == [b"new", b"new"]


@case(7)
async def a_lane_is_relayed_in_the_order_of_its_updates(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(n, n % 2) for n in range(20)])
    while leases := await storage.claim(2):
        for lease in reversed(leases):
            await storage.finish(lease.token, [b"%d" % lease.update_id])
    while await storage.relay(filed.file, 3):
        pass
    for lane in (0, 1):
        assert [int(body) for body in filed.bodies if int(body) % 2 == lane] == list(range(lane, 20, 2))


@case(7)
async def a_relay_hands_out_no_more_than_its_limit(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    await storage.finish(lease.token, [b"%d" % n for n in range(5)])
    assert [await storage.relay(filed.file, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert filed.bodies == [b"0", b"1", b"2", b"3", b"4"]


@case(7)
async def what_was_not_filed_is_handed_out_again(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    await storage.finish(lease.token, [b"a", b"b"])
    for _ in range(2):
        with pytest.raises(Broken):
            await storage.relay(_breaks, 100)
    assert await storage.relay(filed.file, 100) == 2
    assert filed.bodies == [b"a", b"b"]


@case(7)
async def a_relay_that_broke_is_not_overtaken(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1), update(2)])
    (lease,) = await storage.claim(1)
    await storage.finish(lease.token, [b"1"])
    seen: list[OutboxRow] = []
    with pytest.raises(Broken):
        await storage.relay(lambda rows: _interrupted(seen, rows), 100)
    (lease,) = await storage.claim(1)
    await storage.finish(lease.token, [b"2"])
    await storage.relay(filed.file, 1)
    await storage.relay(filed.file, 100)
    assert filed.bodies == [b"1", b"2"]
    assert seen[0].id == filed.rows[0].id


@case(7)
async def rows_of_a_lane_are_never_with_two_relays(given: Given) -> None:
    storage = await given.storage()
    await storage.accept([update(n, n % 3) for n in range(30)])
    while leases := await storage.claim(3):
        for lease in leases:
            await storage.finish(lease.token, [b"%d" % lease.update_id])
    out: set[str] = set()
    order: dict[str, list[int]] = {}

    async def files(rows: Sequence[OutboxRow]) -> None:
        lanes = {row.lane for row in rows}
        assert not out & lanes
        out.update(lanes)
        await asyncio.sleep(0.01)
        for row in rows:
            order.setdefault(row.lane, []).append(int(row.body))
        out.difference_update(lanes)

    async def relays() -> None:
        while (await storage.counts(BOT)).outbox:
            await storage.relay(files, 4)

    async with asyncio.timeout(30):
        await asyncio.gather(*(relays() for _ in range(3)))
    assert sum(map(len, order.values())) == 30
    assert all(lane == sorted(lane) for lane in order.values())


@case(7, "durable")
async def the_outbox_is_there_after_a_restart(given: Given) -> None:
    storage, filed = await given.storage(), Filed()
    await storage.accept([update(1)])
    (lease,) = await storage.claim(1)
    await storage.finish(lease.token, [b"a"])
    storage = await given.reopened(storage)
    assert await storage.relay(filed.file, 100) == 1
    assert filed.bodies == [b"a"]
