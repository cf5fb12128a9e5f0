"""The inbox against a model of it, in whatever order hypothesis finds: three storages, the same rules.

The model is one list a lane and a few sets. Time is the model's own where a storage takes a clock;
PostgreSQL's leases are let run out by its table.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import sql

from pillarbox.db.schema import metadata
from pillarbox.ids import BotId, Token, UpdateId
from pillarbox.inbox import Accepted, FsmKey, FsmWrite, Incoming, Lease, Limits, OutboxRow, Retried, Storage
from pillarbox.inbox.memory import MemoryStorage
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_solo.postgres import PostgresServer
from tests.support.servers import fresh_database

BOT = BotId(42)
LIMITS = Limits(lease=30, max_handler_runs=3, max_failed=4)
EXAMPLES = settings(
    max_examples=int(os.environ.get("MODEL_EXAMPLES", "25")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class World:
    """A storage, its clock, and how to make it again on the same data."""

    durable = True

    def __init__(self) -> None:
        self.time = 0.0

    def make(self) -> Storage:
        raise NotImplementedError

    def clock(self) -> float:
        return self.time

    def now(self) -> float:
        return 1_800_000_000.0 + self.time

    def expire(self) -> None:
        self.time += LIMITS.lease + 1

    def empty(self) -> None:
        """Before each example."""


class InMemory(World):
    durable = False

    def make(self) -> Storage:
        return MemoryStorage(LIMITS, now=self.now, clock=self.clock)


class OnSQLite(World):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._number = 0

    def make(self) -> Storage:
        return SQLiteStorage(self._folder / f"{self._number}.db", LIMITS, now=self.now, clock=self.clock)

    def empty(self) -> None:
        self._number += 1


class OnPostgres(World):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._connection = psycopg.connect(url, autocommit=True)

    def make(self) -> Storage:
        return PostgresStorage.from_url(self._url, LIMITS)

    def expire(self) -> None:
        self._connection.execute(
            "UPDATE lanes SET lease_until = now() - interval '1 s' WHERE token IS NOT NULL"
        )

    def empty(self) -> None:
        tables = sql.SQL(", ").join(map(sql.Identifier, metadata.tables))
        self._connection.execute(sql.SQL("TRUNCATE {}").format(tables))

    def close(self) -> None:
        self._connection.close()


class Inbox(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world.empty()
        self.storage = self.do(self._started())
        self.lanes: dict[str, list[int]] = defaultdict(list)
        self.runs: dict[int, int] = defaultdict(int)
        self.held: dict[Token, Lease] = {}
        self.old: list[Token] = []
        self.failed: list[int] = []
        self.known: set[int] = set()
        self.outbox: dict[str, list[bytes]] = defaultdict(list)
        self.filed: dict[str, list[bytes]] = defaultdict(list)
        self.filed_ids: set[str] = set()
        self.spent: set[int] = set()
        self.uncounted: set[Token] = set()
        self.tries: dict[int, int] = defaultdict(int)
        self.states: dict[FsmKey, str | None] = {}

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    async def _started(self) -> Storage:
        storage = self.world.make()
        await storage.open()
        assert await storage.try_lock([BOT])
        return storage

    def teardown(self) -> None:
        self.do(self.storage.close())
        self.runner.close()

    # what Telegram does

    @rule(numbers=st.lists(st.integers(1, 60), max_size=6))
    def accept(self, numbers: list[int]) -> None:
        answers = self.do(self.storage.accept([self._update(n) for n in numbers]))
        for n, answer in zip(numbers, answers, strict=True):
            assert answer is (Accepted.REPEAT if n in self.known else Accepted.NEW)
            if n not in self.known:
                self.known.add(n)
                self.lanes[self._lane(n)].append(n)

    def _lane(self, n: int) -> str:
        return f"chat:{n % 4}"

    def _update(self, n: int) -> Incoming:
        return Incoming(BOT, UpdateId(n), "message", self._lane(n), b"%d" % n, n % 4, n % 4)

    # what a dispatcher does

    @rule(slots=st.integers(0, 5), suspects=st.booleans())
    def claim(self, slots: int, suspects: bool) -> None:
        turn = self.do(self.storage.turn((), slots, suspects=suspects, fsm=True))
        assert len(turn.leases) <= slots
        self._take(turn.leases)

    def _take(self, leases: Sequence[Lease]) -> None:
        self._fail_spent()
        if any(lease.suspect for lease in leases):
            assert len(leases) == 1
        for lease in leases:
            n = int(lease.update_id)
            assert lease.lane not in {held.lane for held in self.held.values()}
            assert self.lanes[lease.lane][0] == n
            assert lease.body == b"%d" % n
            self.runs[n] += 1
            assert lease.run == self.runs[n] <= LIMITS.max_handler_runs
            assert lease.suspect == (lease.run > 2)
            assert lease.fsm is not None
            assert lease.fsm.state == self.states.get(FsmKey(BOT, lease.lane))
            self.held[lease.token] = lease

    @precondition(lambda self: self.held)
    @rule(data=st.data(), replies=st.integers(0, 3))
    def finish(self, data: st.DataObject, replies: int) -> None:
        lease = self._ended(data)
        elements = [b"%d.%d" % (lease.update_id, n) for n in range(replies)]
        assert self.do(self.storage.finish(lease.token, elements))
        self.lanes[lease.lane].pop(0)
        self.outbox[lease.lane] += elements

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        lease = self._ended(data)
        assert self.do(self.storage.fail(lease.token, "E: at bot.py:1"))
        self._failed(self.lanes[lease.lane].pop(0))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), later=st.booleans())
    def release(self, data: st.DataObject, later: bool) -> None:
        lease = self._ended(data)
        assert self.do(self.storage.later(lease.token, 0) if later else self.storage.release(lease.token))
        self.runs[lease.update_id] -= 1

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        keys=st.sets(st.sampled_from(["chat:0", "chat:1", "x"]), min_size=1),
        state=st.sampled_from([None, "A", "B"]),
        late=st.booleans(),
    )
    def finish_with_state(self, data: st.DataObject, keys: set[str], state: str | None, late: bool) -> None:
        lease = self._ended(data)
        asked = [FsmKey(BOT, key) for key in sorted(keys)]
        values = self.do(self.storage.read_fsm(asked))
        assert [value.state for value in values] == [self.states.get(key) for key in asked]
        versions = [value.version for value in values]
        versions[-1] += late
        writes = [FsmWrite(key, v, state) for key, v in zip(asked, versions, strict=True)]
        assert self.do(self.storage.finish(lease.token, [b"state"], writes)) is not late
        if late:
            self.runs[lease.update_id] -= 1
        else:
            self.states |= dict.fromkeys(asked, state)
            self.lanes[lease.lane].pop(0)
            self.outbox[lease.lane] += [b"state"]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def uncount(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(sorted(self.held)))
        assert self.do(self.storage.uncount(token))
        if token not in self.uncounted:
            self.uncounted.add(token)
            self.runs[self.held[token].update_id] -= 1

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def retried(self, data: st.DataObject) -> None:
        lease = self._ended(data)
        n = int(lease.update_id)
        turn = self.do(self.storage.turn([Retried(lease.token, "E: at bot.py:1", 0, 0, 2)], 0))
        self._fail_spent()
        self.tries[n] += 1
        assert turn.given_up == ({lease.token} if self.tries[n] > 2 else frozenset())
        if turn.given_up:
            self._failed(self.lanes[lease.lane].pop(0))
        else:
            self.runs[n] -= 1

    @precondition(lambda self: self.old)
    @rule(data=st.data(), what=st.sampled_from(["finish", "fail", "release"]))
    def end_too_late(self, data: st.DataObject, what: str) -> None:
        token = data.draw(st.sampled_from(self.old))
        if what == "finish":
            assert not self.do(self.storage.finish(token, [b"late"]))
        elif what == "fail":
            assert not self.do(self.storage.fail(token, "late"))
        else:
            assert not self.do(self.storage.release(token))

    @rule()
    def renew(self) -> None:
        renewer = self.storage.renewer()
        lost = renewer.renew([*self.held, *self.old])
        renewer.close()
        assert lost == frozenset(self.old)

    @precondition(lambda self: self.held)
    @rule()
    def expire(self) -> None:
        """Every holder vanishes, and the next turn takes their lanes back."""
        self.world.expire()
        self._vanish()
        self._until_rescued()

    def _vanish(self) -> None:
        for token, lease in self.held.items():
            self.old.append(token)
            if self.runs[lease.update_id] >= LIMITS.max_handler_runs:
                self.spent.add(int(lease.update_id))
        self.held.clear()
        self.uncounted.clear()

    def _until_rescued(self) -> None:
        """A storage looks for such lanes a few times a second, and not at every turn."""

        async def rescued() -> None:
            async with asyncio.timeout(5):
                while True:
                    self.world.time += 1
                    await self.storage.turn((), 0)
                    renewer = self.storage.renewer()
                    lost = await asyncio.to_thread(renewer.renew, self.old)
                    renewer.close()
                    if lost == frozenset(self.old):
                        return
                    self.world.expire()
                    await asyncio.sleep(0.05)

        self.do(rescued())
        self._fail_spent()

    def _fail_spent(self) -> None:
        for n in sorted(self.spent, key=lambda n: self._lane(n)):
            self.lanes[self._lane(n)].remove(n)
            self._failed(n)
        self.spent.clear()

    def _ended(self, data: st.DataObject) -> Lease:
        token = data.draw(st.sampled_from(sorted(self.held)))
        self.old.append(token)
        if token in self.uncounted:
            self.uncounted.remove(token)
            self.runs[self.held[token].update_id] += 1
        return self.held.pop(token)

    def _failed(self, n: int) -> None:
        self.runs[n] = self.tries[n] = 0
        self.failed.append(n)

    # what people do

    @rule(data=st.data(), discard=st.booleans())
    def move(self, data: st.DataObject, discard: bool) -> None:
        kept = self._kept()
        asked = data.draw(st.lists(st.integers(1, 60), unique=True, max_size=8))
        act = self.storage.discard if discard else self.storage.requeue
        moved = self.do(act(BOT, [UpdateId(n) for n in asked], "anna"))
        waiting = {n for lane in self.lanes.values() for n in lane}
        assert moved.moved == len([n for n in asked if n in kept])
        assert moved.running == [n for n in asked if n not in kept and n in waiting]
        assert moved.unknown == [n for n in asked if n not in kept and n not in waiting]
        chosen = [n for n in kept if n in asked]
        self.failed = [n for n in self.failed if n not in chosen]
        if not discard:
            self._requeued(chosen)

    def _requeued(self, chosen: list[int]) -> None:
        """In the order of acceptance: the one thing that the model takes from the storage."""
        for n in sorted(chosen, key=self._rows.__getitem__):
            self.lanes[self._lane(n)].append(n)

    def _kept(self) -> list[int]:
        """The failed list: of those that failed, the newest, and none that was not one of them."""
        found = self.do(self.storage.failed_updates(BOT, limit=1000))
        kept = [int(failed.update_id) for failed in found]
        self._rows = {int(failed.update_id): failed.row for failed in found}
        assert set(kept) <= set(self.failed)
        assert len(kept) == len(set(kept))
        assert len(kept) >= min(len(self.failed), LIMITS.max_failed)
        self.failed = [n for n in self.failed if n in kept]
        return kept

    # what the relay does

    @rule(limit=st.integers(1, 5), breaks=st.booleans())
    def relay(self, limit: int, breaks: bool) -> None:
        async def file(rows: Sequence[OutboxRow]) -> None:
            for row in rows:
                if row.id not in self.filed_ids:
                    self.filed_ids.add(row.id)
                    self.filed[row.lane].append(row.body)
            if breaks:
                raise ConnectionResetError

        try:
            self.do(self.storage.relay(file, limit))
        except ConnectionResetError:
            assert breaks
        for lane, filed in self.filed.items():
            assert filed == self.outbox[lane][: len(filed)]

    # what a process does

    @precondition(lambda self: self.world.durable)
    @rule()
    def restart(self) -> None:
        self.do(self.storage.close())
        self.world.expire()
        self._vanish()
        self.storage = self.do(self._started())
        self._until_rescued()

    @rule()
    def sweep(self) -> None:
        self.do(self.storage.sweep())

    @rule()
    def count(self) -> None:
        counts = self.do(self.storage.counts(BOT))
        self._fail_spent()
        assert counts.pending == sum(map(len, self.lanes.values()))
        assert counts.outbox <= sum(map(len, self.outbox.values()))

    @initialize()
    def nothing(self) -> None:
        assert self.do(self.storage.claim(5)) == []


@pytest.fixture(scope="module")
def database(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_database(postgres_server) as url:
        yield url


def _agree(world: World) -> None:
    class Model(Inbox):
        pass

    Model.world = world
    run_state_machine_as_test(Model, settings=EXAMPLES)


@pytest.mark.timeout(300)
def test_memory_agrees_with_the_model() -> None:
    _agree(InMemory())


@pytest.mark.timeout(300)
def test_sqlite_agrees_with_the_model(tmp_path: Path) -> None:
    _agree(OnSQLite(tmp_path))


@pytest.mark.timeout(300)
def test_postgres_agrees_with_the_model(database: str) -> None:
    world = OnPostgres(database)
    _agree(world)
    world.close()
