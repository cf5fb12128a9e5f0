"""DESIGN, Inbox 7: the outbox leaves in the order of its lane, and is handed out until somebody took it."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox.ids import UpdateId
from pillarbox.inbox import Finished, OutboxRow
from pillarbox.inbox.postgres import PostgresStorage
from tests.support.inbox import incoming, opened, query

Key = tuple[str, int, int]
BEHIND = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query = 'COMMIT'
"""


class Filed:
    """Collects what it is handed; `gate` holds it, `error` is raised once."""

    def __init__(self, gate: asyncio.Event | None = None, error: Exception | None = None) -> None:
        self.rows: list[OutboxRow] = []
        self.begun = asyncio.Event()
        self._gate = gate
        self._error = error

    async def __call__(self, rows: Sequence[OutboxRow]) -> None:
        self.rows += rows
        self.begun.set()
        if self._gate is not None:
            await self._gate.wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    @property
    def keys(self) -> list[Key]:
        return [(row.lane, row.row, row.n) for row in self.rows]


async def finish_all(inbox: PostgresStorage, each: int = 2) -> None:
    turn = await inbox.turn([], 64)
    while turn.leases:
        ends = [
            Finished(lease.token, tuple(b"%d.%d" % (lease.update_id, n) for n in range(each)))
            for lease in turn.leases
        ]
        turn = await inbox.turn(ends, 64)


async def test_rows_leave_in_order_and_once(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n % 3}") for n in range(9)])
        await finish_all(inbox)
        filed = Filed()
        assert [await inbox.relay(filed, 5) for _ in range(5)] == [5, 5, 5, 3, 0]
        assert filed.keys == sorted(filed.keys, key=lambda key: key[1:])
        assert len(set(filed.keys)) == 18
        assert filed.rows[0].id == f"700001:{filed.rows[0].row}:0"
        assert filed.rows[0].body == b"0.0"


async def test_what_was_not_filed_is_handed_out_again(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        await finish_all(inbox)
        filed = Filed(error=ConnectionError("the queue is away"))
        with pytest.raises(ConnectionError):
            await inbox.relay(filed, 10)
        assert await inbox.relay(filed, 10) == 2
        assert filed.keys[:2] == filed.keys[2:]


async def test_a_cancelled_relay_hands_its_rows_out_again(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        await finish_all(inbox)
        held = Filed(gate=asyncio.Event())
        task = asyncio.create_task(inbox.relay(held, 10))
        await held.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        filed = Filed()
        async with asyncio.timeout(5):
            while await inbox.relay(filed, 10) == 0:
                pass
        assert filed.keys == held.keys


async def test_a_lane_is_with_one_relay_at_a_time(postgres_url: str) -> None:
    """While one holds the lane's first rows, the other gets other lanes' rows and nothing of this one."""
    async with opened(postgres_url) as one, opened(postgres_url) as other:
        await one.accept([incoming(n) for n in range(4)])
        await finish_all(one)
        gate = asyncio.Event()
        held, passed = Filed(gate), Filed()
        task = asyncio.create_task(one.relay(held, 3))
        await held.begun.wait()
        await one.accept([incoming(10, lane="chat:2")])
        await finish_all(one)
        assert await other.relay(passed, 100) == 2
        assert {row.lane for row in passed.rows} == {"chat:2"}
        gate.set()
        assert await task == 3
        assert await other.relay(passed, 100) == 5
        assert held.keys + passed.keys[2:] == sorted(held.keys + passed.keys[2:])


async def test_a_row_behind_another_relays_leaves_soon_after_it(postgres_url: str) -> None:
    """Nobody rings for it again: the one that holds the first row does not know of the second."""
    async with opened(postgres_url) as one, opened(postgres_url) as other:
        await one.accept([incoming(1)])
        await finish_all(one, each=1)
        gate = asyncio.Event()
        held, behind = Filed(gate), Filed()
        task = asyncio.create_task(one.relay(held, 1))
        await held.begun.wait()
        await one.accept([incoming(2)])
        await finish_all(one, each=1)
        second = asyncio.create_task(other.relay(behind, 100))
        while not query(postgres_url, BEHIND):  # noqa: ASYNC110 - the database's own state
            await asyncio.sleep(0.001)
        gate.set()
        assert (await task, await second) == (1, 1)
        assert held.keys < behind.keys
        assert query(postgres_url, "SELECT 1 FROM outbox") == []


async def test_more_rows_of_one_update_than_a_batch(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2)])
        await finish_all(inbox, each=7)
        filed = Filed()
        assert [await inbox.relay(filed, 3) for _ in range(6)] == [3, 3, 3, 3, 2, 0]
        assert filed.keys == sorted(filed.keys)


async def test_a_dead_dispatchers_rows_go_before_the_lanes_later_ones(postgres_url: str) -> None:
    """It died between its commit and its relay, and another one finished the lane's next update."""
    async with opened(postgres_url) as dead, opened(postgres_url) as other:
        await dead.accept([incoming(1), incoming(2)])
        (lease,) = await dead.claim(1)
        await dead.finish(lease.token, (b"first",))
        await finish_all(other, each=1)
        filed = Filed()
        await other.relay(filed, 1)
        await other.relay(filed, 1)
        assert [row.body for row in filed.rows] == [b"first", b"2.0"]


async def test_many_relays_at_once_keep_each_lanes_order(postgres_url: str) -> None:
    async with opened(postgres_url) as one, opened(postgres_url) as other:
        await one.accept([incoming(n, lane=f"chat:{n % 7}") for n in range(700)])
        await finish_all(one)
        filed = Filed()
        open_lanes: set[str] = set()

        async def file(rows: Sequence[OutboxRow]) -> None:
            lanes = {row.lane for row in rows}
            assert not lanes & open_lanes
            open_lanes.update(lanes)
            await asyncio.sleep(0.002)
            await filed(rows)
            open_lanes.difference_update(lanes)

        async def relay(inbox: PostgresStorage) -> None:
            while query(postgres_url, "SELECT 1 FROM outbox LIMIT 1"):
                await inbox.relay(file, 40)

        await asyncio.gather(*(relay(inbox) for inbox in (one, one, other, other)))
        assert len(filed.keys) == 1400
        for number in range(7):
            mine = [key[1:] for key in filed.keys if key[0] == f"chat:{number}"]
            assert mine == sorted(mine)


async def test_a_finish_tells_what_is_the_foremost_of_its_lane(postgres_url: str) -> None:
    """What the turn names may be filed ahead of the relay: nothing older of the lane is in the outbox."""
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1), incoming(2), incoming(3, lane="chat:7"), incoming(4, lane="chat:8")])
        leases = {lease.update_id: lease for lease in (await inbox.turn([], 64)).leases}
        silent, first = Finished(leases[UpdateId(4)].token), Finished(leases[UpdateId(1)].token, (b"a", b"b"))
        turn = await inbox.turn([Finished(leases[UpdateId(3)].token, (b"c",)), first, silent], 64)
        assert [(row.lane, row.row, row.n, row.body) for row in turn.foremost] == [
            ("chat:1", leases[UpdateId(1)].row, 0, b"a"),
            ("chat:1", leases[UpdateId(1)].row, 1, b"b"),
            ("chat:7", leases[UpdateId(3)].row, 0, b"c"),
        ]
        behind = await inbox.turn([Finished(turn.leases[0].token, (b"d",))], 64)
        assert behind.foremost == ()
        filed = Filed()
        assert await inbox.relay(filed, 10) == 4
        assert [row.body for row in filed.rows] == [b"a", b"b", b"d", b"c"]


async def test_no_early_message_passes_one_that_another_relay_holds(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox, opened(postgres_url) as other:
        await inbox.accept([incoming(1), incoming(2)])
        turn = await inbox.turn([], 64)
        turn = await inbox.turn([Finished(turn.leases[0].token, (b"a",))], 64)
        held = Filed(asyncio.Event())
        relay = asyncio.create_task(other.relay(held, 10))
        await held.begun.wait()
        turn = await inbox.turn([Finished(turn.leases[0].token, (b"b",))], 64)
        assert turn.foremost == ()
        assert held._gate is not None
        held._gate.set()
        assert await relay == 1


async def test_where_many_finish_at_once_none_is_named(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(20)])
        turn = await inbox.turn([], 64)
        turn = await inbox.turn([Finished(lease.token, (b"a",)) for lease in turn.leases], 64)
        assert turn.foremost == ()


async def test_an_end_that_was_lost_or_undone_names_nothing(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        (lease,) = (await inbox.turn([], 64)).leases
        await inbox.finish(lease.token)
        turn = await inbox.turn([Finished(lease.token, (b"a",))], 64)
        assert turn.lost == {lease.token}
        assert turn.foremost == ()
