"""Everything at once, over few lanes: nothing lost, doubled, reordered or overlapped, and no deadlock."""

import asyncio
import random
from collections import defaultdict

import psycopg

from pillarbox.ids import Token
from pillarbox.inbox import End, Failed, Finished, Later, Lease, Released
from pillarbox.inbox.postgres import PostgresStorage
from tests.support.inbox import BOT, incoming, opened, query

UPDATES, LANES, LOOPS = 3000, 25, 4
WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Handled:
    """What ran, in which order, and whether a lane was ever with two at a time."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.finished: dict[str, list[int]] = defaultdict(list)
        self.overlaps = 0

    def begin(self, lease: Lease) -> None:
        self.overlaps += lease.lane in self.running
        self.running.add(lease.lane)

    @property
    def count(self) -> int:
        return sum(map(len, self.finished.values()))


async def accept(inbox: PostgresStorage, part: int, chance: random.Random) -> None:
    """Each acceptor's ids grow inside a lane; a lane has several acceptors."""
    mine = [incoming(n, lane=f"chat:{chance.randrange(LANES)}") for n in range(part, UPDATES, LOOPS)]
    while mine:
        size = chance.randint(1, 40)
        batch, mine = mine[:size], mine[size:]
        await inbox.accept([*batch, batch[0]])
        await asyncio.sleep(0)


def end(lease: Lease, chance: random.Random) -> End:
    draw = chance.random()
    if draw < 0.05:
        return Released(lease.token)
    if draw < 0.1:
        return Later(lease.token, 0.01)
    if draw < 0.15:
        return Failed(lease.token, "E")
    return Finished(lease.token, (b"x",))


async def dispatch(inbox: PostgresStorage, handled: Handled, chance: random.Random) -> None:
    ends: list[End] = []
    while handled.count < UPDATES:
        turn = await inbox.turn(ends, 8)
        assert not turn.lost
        ends = []
        for lease in turn.leases:
            handled.begin(lease)
        await asyncio.sleep(0.001)
        for lease in turn.leases:
            how = end(lease, chance)
            if isinstance(how, Finished):
                handled.finished[lease.lane].append(lease.row)
            handled.running.discard(lease.lane)
            ends.append(how)
    await inbox.turn(ends, 0)


async def disturb(inbox: PostgresStorage, handled: Handled) -> None:
    """The failed come back, at their lanes' ends; sweeps and renewals go on meanwhile."""
    renewer = inbox.renewer()
    while handled.count < UPDATES:
        await inbox.requeue(BOT, None, "load")
        await inbox.sweep()
        held = [
            Token(token) for (token,) in query(inbox_url(inbox), "SELECT token FROM lanes WHERE token > 0")
        ]
        await asyncio.to_thread(renewer.renew, held)
        await asyncio.sleep(0.01)
    renewer.close()


def inbox_url(inbox: PostgresStorage) -> str:
    return inbox._url


async def test_acceptors_and_dispatchers_at_once(postgres_url: str) -> None:
    handled = Handled()
    async with opened(postgres_url) as first, opened(postgres_url) as second, asyncio.TaskGroup() as group:
        for number in range(LOOPS):
            inbox = (first, second)[number % 2]
            group.create_task(accept(inbox, number, random.Random(number)))
            group.create_task(dispatch(inbox, handled, random.Random(100 + number)))
        group.create_task(disturb(second, handled))
    assert handled.overlaps == 0
    # The row's number is the order of acceptance, also of what was accepted again.
    assert all(rows == sorted(rows) for rows in handled.finished.values())
    assert handled.count == UPDATES
    assert len({row for rows in handled.finished.values() for row in rows}) == UPDATES
    assert query(postgres_url, "SELECT count(DISTINCT row_id), count(*) FROM outbox") == [(UPDATES, UPDATES)]
    left = "SELECT 1 FROM lanes UNION ALL SELECT 1 FROM updates UNION ALL SELECT 1 FROM failed"
    assert query(postgres_url, left) == []


class Watcher:
    """Looks again and again; a row that comes with a lower number than one seen before is late."""

    def __init__(self, url: str) -> None:
        self.late = 0
        self.looks = 0
        self._url = url
        self._seen: dict[str, set[int]] = defaultdict(set)

    def look(self) -> None:
        self.looks += 1
        for lane, rows in query(self._url, "SELECT lane, array_agg(row_id) FROM updates GROUP BY lane"):
            seen = self._seen[lane]
            newest = max(seen, default=0)
            self.late += sum(row < newest for row in rows if row not in seen)
            seen.update(rows)


async def test_rows_of_a_lane_are_numbered_in_the_order_of_their_commits(postgres_url: str) -> None:
    """Else a dispatcher that saw the later one first would pass over the earlier one."""
    watcher = Watcher(postgres_url)
    done = asyncio.Event()

    async def accept_many(inbox: PostgresStorage, part: int) -> None:
        for n in range(part, 400, 4):
            await inbox.accept([incoming(n * 10 + i, lane=f"chat:{i % 2}") for i in range(10)])

    async def look() -> None:
        while not done.is_set():
            await asyncio.to_thread(watcher.look)

    async with opened(postgres_url) as inbox:
        looking = asyncio.create_task(look())
        await asyncio.gather(*(accept_many(inbox, part) for part in range(4)))
        done.set()
        await looking
    watcher.look()
    assert watcher.looks > 5
    assert watcher.late == 0


async def test_a_row_gets_its_number_after_its_lane_is_locked(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        with psycopg.connect(postgres_url) as other:
            other.execute("UPDATE lanes SET pending = pending")
            task = asyncio.create_task(inbox.accept([incoming(2)]))
            while not query(postgres_url, WAITS):  # noqa: ASYNC110 - the database's own state
                await asyncio.sleep(0.01)
            taken = other.execute("SELECT nextval(pg_get_serial_sequence('updates', 'row_id'))").fetchone()
            other.commit()
        await task
        assert taken is not None
        assert query(postgres_url, "SELECT max(row_id) FROM updates")[0] > taken
