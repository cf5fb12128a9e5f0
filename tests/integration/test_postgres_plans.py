"""At a million updates in 100,000 lanes no hot call reads a table from end to end, or more as more waits.

Counted by PostgreSQL itself, over the real calls: what their statements read, also inside the functions.
Each is called often enough for its generic plan, and both before and after the first ANALYZE.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pillarbox.ids import UpdateId
from pillarbox.inbox import (
    End,
    Failed,
    Filter,
    Finished,
    FsmKey,
    FsmWrite,
    Later,
    Lease,
    Released,
    Retried,
    Uncounted,
)
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox_solo.postgres import PostgresServer
from tests.support.backlog import pile, remember, settle
from tests.support.inbox import BOT, incoming, opened, query
from tests.support.servers import fresh_database

UPDATES, LANES = 1_000_000, 100_000
TABLES = ("updates", "lanes", "seen", "outbox", "fsm", "failed")
TIMES = 8
"""psycopg and PostgreSQL have made their last plan by then."""
READ = """
SELECT t.relname, t.seq_scan, t.seq_tup_read + coalesce(sum(i.idx_tup_read), 0)::bigint
FROM pg_stat_user_tables t LEFT JOIN pg_stat_user_indexes i USING (relid)
GROUP BY t.relid, t.relname, t.seq_scan, t.seq_tup_read
"""
CONNECTED = """
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pillarbox' AND datname = current_database()
"""
new_ids = itertools.count(10_000_000)
PAGES = f"SELECT relpages FROM pg_class WHERE relname IN {TABLES}"  # noqa: S608 - constants
OLD = "SELECT count(*) FROM seen WHERE accepted_at < now() - interval '72 hours'"
OUTBOX = """
INSERT INTO outbox (row_id, n, bot_id, lane, body)
SELECT n, 0, 700001, 'chat:' || n % 1000, 'x' FROM generate_series(1, 50000) n
"""
STATE = """
INSERT INTO fsm (bot_id, key, version, state)
SELECT 700001, 'chat:' || n, n, 'city' FROM generate_series(1, 1000000) n
"""
FAILED = """
INSERT INTO failed (row_id, bot_id, update_id, accepted_at, runs, lane, kind, error, body)
SELECT n, 700001, 2000000 + n, now(), 1, 'chat:' || n, 'message', 'KeyError: x', 'x'
FROM generate_series(1, 10000) n
"""


@dataclass(frozen=True)
class Scans:
    """Of one table, while something was done."""

    sequential: int
    entries: int


@pytest.fixture(scope="module")
def full(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_database(postgres_server) as url:
        query(url, "ANALYZE")  # as autovacuum may have found it: empty
        pile(url, UPDATES, LANES)
        remember(url, UPDATES // 2, hours=1)
        remember(url, UPDATES // 2, hours=100, start=UPDATES)
        query(url, OUTBOX)
        query(url, FAILED)
        query(url, STATE)
        yield url


@pytest.fixture(scope="module")
def emptied(postgres_server: PostgresServer) -> Iterator[str]:
    """What autovacuum saw was an idle inbox: many pages, and no row. Then much came at once."""
    with fresh_database(postgres_server) as url:
        seen_empty(url)
        burst(url)
        yield url


@pytest.fixture
def idle(postgres_server: PostgresServer) -> Iterator[str]:
    """What autovacuum saw of it was no row, and little has come since."""
    with fresh_database(postgres_server) as url:
        seen_empty(url)
        pile(url, 1_000, 500, first=1_000_001, start=1_000_000)
        query(url, FAILED)
        query(url, OUTBOX.replace("50000", "500"))
        yield url


def seen_empty(url: str) -> None:
    for table in TABLES:
        query(url, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    pile(url, 5_000, 500)
    remember(url, 5_000, hours=1)
    for statement in (OUTBOX, FAILED, STATE.replace("1000000", "5000")):
        query(url, statement)
    for table in TABLES:
        query(url, f"DELETE FROM {table}")  # noqa: S608 - a constant of this module
    query(url, "VACUUM (ANALYZE, TRUNCATE off)")
    assert (0,) not in query(url, PAGES)


def burst(url: str) -> None:
    """Two updates in each of 40,000 lanes."""
    pile(url, 80_000, 40_000, first=2_000_001)
    remember(url, 80_000, hours=1)
    remember(url, 20_000, hours=100, start=80_000)
    query(url, OUTBOX.replace("(1,", "(501,"))
    query(url, FAILED + " ON CONFLICT DO NOTHING")
    query(url, STATE.replace("(1, 1000000)", "(2000001, 2040000)"))


async def nobody_connected(url: str) -> None:
    """A backend hands in its counts when it ends."""
    async with asyncio.timeout(10):
        while query(url, CONNECTED) != [(0,)]:  # noqa: ASYNC110 - the database's own state
            await asyncio.sleep(0.02)


async def scans(url: str, call: Callable[[PostgresStorage], Awaitable[None]]) -> dict[str, Scans]:
    before = {name: (seq, read) for name, seq, read in query(url, READ)}
    async with opened(url) as inbox:
        await call(inbox)
    await nobody_connected(url)
    after = query(url, READ)
    return {name: Scans(seq - before[name][0], read - before[name][1]) for name, seq, read in after}


async def accept(inbox: PostgresStorage) -> None:
    for _ in range(TIMES):
        await inbox.accept([incoming(next(new_ids), lane=f"chat:{i * 1000}") for i in range(50)])


async def turns(inbox: PostgresStorage, end: Callable[[Lease], End], slots: int = 32) -> None:
    ends: Sequence[End] = ()
    for _ in range(TIMES):
        turn = await inbox.turn(ends, slots)
        ends = [end(lease) for lease in turn.leases]
        await asyncio.sleep(0.26)  # so that each of them looks for dead leases too
    await inbox.turn(ends, 0)


async def finish(inbox: PostgresStorage) -> None:
    await turns(inbox, lambda lease: Finished(lease.token, (b"x",)))


async def few_replies(inbox: PostgresStorage) -> None:
    """So few that each is asked whether its lane has others before it."""
    await turns(inbox, lambda lease: Finished(lease.token, (b"x",)), 8)


async def other_ends(inbox: PostgresStorage) -> None:
    kinds: tuple[Callable[[Lease], End], ...] = (
        lambda lease: Failed(lease.token, "E"),
        lambda lease: Released(lease.token),
        lambda lease: Later(lease.token, 0.1),
    )
    await turns(inbox, lambda lease: kinds[lease.row % 3](lease))


async def runs(inbox: PostgresStorage) -> None:
    """What `inbox_run_turn` decides first: state, retries, runs given back."""
    ends: Sequence[End] = ()
    for _ in range(TIMES):
        turn = await inbox.turn(ends, 32, fsm=True)
        assert not turn.stale | turn.given_up
        assert len(turn.leases) == 32
        ends = [_end_of_run(lease) for lease in turn.leases]
        await asyncio.sleep(0.26)
    await inbox.turn(ends, 0)


def _end_of_run(lease: Lease) -> End:
    assert lease.fsm is not None
    if lease.row % 2:
        return Finished(lease.token, (), (FsmWrite(key_of(lease), lease.fsm.version, "next", b"{}"),))
    if lease.row % 3:
        return Retried(lease.token, "KeyError", 0.1, 0.1, 9)
    return Uncounted(lease.token)


def key_of(lease: Lease) -> FsmKey:
    return FsmKey(lease.bot_id, lease.lane)


async def state(inbox: PostgresStorage) -> None:
    for n in range(TIMES):
        keys = [FsmKey(BOT, f"chat:{500_000 + n * 50 + i}") for i in range(25)]
        new = [FsmKey(BOT, f"user:{n * 50 + i}") for i in range(25)]
        values = await inbox.read_fsm([*keys, *new])
        writes = [
            FsmWrite(key, value.version, "x", None) for key, value in zip([*keys, *new], values, strict=True)
        ]
        assert await inbox.write_fsm(writes)


async def renew(inbox: PostgresStorage) -> None:
    renewer = inbox.renewer()
    held = [lease.token for lease in await inbox.claim(32)]
    for _ in range(TIMES):
        assert renewer.renew(held) == frozenset()
    renewer.close()
    await inbox.turn([Released(token) for token in held], 0)


async def relay(inbox: PostgresStorage) -> None:
    async def file(_: Any) -> None: ...

    for _ in range(TIMES):
        assert await inbox.relay(file, 50) == 50


async def people(inbox: PostgresStorage) -> None:
    for n in range(TIMES):
        await inbox.requeue(BOT, [UpdateId(2_000_001 + n)], "plans")
        await inbox.discard(BOT, [UpdateId(2_005_001 + n)], "plans")
        await inbox.failed_updates(BOT, limit=50)
        await inbox.pinned(BOT, n)


async def sweep(inbox: PostgresStorage) -> None:
    await inbox.sweep()


HOT = [accept, finish, few_replies, other_ends, runs, state, renew, relay, people]
MOST = {
    "updates": 20_000,
    "lanes": 20_000,
    "seen": 20_000,
    "outbox": 20_000,
    "fsm": 20_000,
    "failed": 400_000,
}
"""Entries read in all calls of a test. To trim `failed`, and to pick of it, reads MAX_FAILED at most."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("settled", [False, True], ids=["not analyzed", "settled"])
async def test_no_hot_call_reads_with_the_backlog(full: str, settled: bool) -> None:
    if settled:
        settle(full)
    assert await too_much(full) == {}


@pytest.mark.timeout(300)
async def test_no_call_trusts_that_the_inbox_is_still_empty(emptied: str) -> None:
    assert await too_much(emptied) == {}


@pytest.mark.timeout(60)
async def test_a_sweep_of_what_was_empty_looks_up_each_old_row(emptied: str) -> None:
    """20,000 are old."""
    found = await scans(emptied, sweep)
    assert query(emptied, OLD) == [(0,)]
    assert {name: found[name].sequential for name in TABLES} == dict.fromkeys(TABLES, 0)
    assert found["seen"].entries < 5 * 20_000
    assert {name for name in TABLES if found[name].entries > 50_000} <= {"seen"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("call", HOT, ids=lambda call: call.__name__)
async def test_no_plan_of_an_idle_inbox_reads_a_burst_from_end_to_end(
    idle: str, call: Callable[[PostgresStorage], Awaitable[None]]
) -> None:
    """One connection: its last plans were made while there was little."""

    async def idle_then_burst(inbox: PostgresStorage) -> None:
        await call(inbox)
        burst(idle)
        await call(inbox)

    assert await too_much(idle, [idle_then_burst]) == {}


async def too_much(
    url: str, calls: Sequence[Callable[[PostgresStorage], Awaitable[None]]] = HOT
) -> dict[tuple[str, str], Scans]:
    """By call and table: sequential scans, or more entries than the call needs."""
    found = {call.__name__: await scans(url, call) for call in calls}
    return {
        (call, name): scan
        for call, tables in found.items()
        for name, scan in tables.items()
        if name in MOST and (scan.sequential or scan.entries > MOST[name])
    }


async def test_failed_updates_are_looked_up_by_their_ids(full: str) -> None:
    """10,000 are on the list; no call reads more than what it is asked for."""

    async def chosen(inbox: PostgresStorage) -> None:
        for n in range(TIMES):
            asked = Filter(update_ids=(UpdateId(2_007_001 + n),), error="KeyError")
            assert len(await inbox.failed_updates(BOT, matching=asked)) == 1
            await inbox.requeue(BOT, [UpdateId(2_007_001 + n)], "plans")
            await inbox.discard(BOT, Filter(update_ids=(UpdateId(2_008_001 + n),)), "plans")

    found = await scans(full, chosen)
    assert (found["failed"].sequential, found["failed"].entries < 50 * TIMES) == (0, True)


@pytest.mark.timeout(120)
async def test_a_sweep_reads_what_is_old_and_nothing_else(full: str) -> None:
    """Half of `seen` is past its time: a row is read by its age and by its key, to lock and to delete it."""
    found = await scans(full, sweep)
    assert query(full, OLD) == [(0,)]
    assert {name: found[name].sequential for name in ("updates", "lanes", "seen")} == dict.fromkeys(
        ("updates", "lanes", "seen"), 0
    )
    assert found["seen"].entries < 5 * UPDATES // 2
