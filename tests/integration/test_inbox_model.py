"""The inbox against a model of it, in whatever order hypothesis finds: three storages, the same rules."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    rule,
    run_state_machine_as_test,
)

from pillarbox.ids import UpdateId
from pillarbox.inbox import Accepted, Incoming, OutboxRow
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox_model import Dispatching
from tests.support.servers import fresh_database
from tests.support.worlds import BOT, LIMITS, InMemory, OnPostgres, OnSQLite, World

EXAMPLES = settings(
    max_examples=int(os.environ.get("MODEL_EXAMPLES", "25")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Inbox(Dispatching):
    """What Telegram, people, the relay and a process do."""

    @rule(numbers=st.lists(st.integers(1, 60), max_size=6))
    def accept(self, numbers: list[int]) -> None:
        answers = self.do(self.storage.accept([self._update(n) for n in numbers]))
        for n, answer in zip(numbers, answers, strict=True):
            assert answer is (Accepted.REPEAT if n in self.known else Accepted.NEW)
            if n not in self.known:
                self.known.add(n)
                self.lanes[self._lane(n)].append(n)

    def _update(self, n: int) -> Incoming:
        return Incoming(BOT, UpdateId(n), "message", self._lane(n), b"%d" % n, n % 4, n % 4)

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
