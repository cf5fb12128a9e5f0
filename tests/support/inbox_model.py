"""A model of the inbox: one list a lane and a few sets; and what a dispatcher does to both."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
)

from pillarbox.ids import Token
from pillarbox.inbox import FsmKey, FsmWrite, Lease, Retried, Storage
from tests.support.worlds import BOT, LIMITS, World


class Model(RuleBasedStateMachine):
    """What must be true of the storage, and what is kept of it to say so."""

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

    def _lane(self, n: int) -> str:
        return f"chat:{n % 4}"

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


class Dispatching(Model):
    @rule(slots=st.integers(0, 5), suspects=st.booleans())
    def claim(self, slots: int, suspects: bool) -> None:
        turn = self.do(self.storage.turn((), slots, suspects=suspects, fsm=True))
        assert len(turn.leases) <= slots
        self._take(turn.leases)

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

    @precondition(lambda self: self.world.durable)
    @rule()
    def restart(self) -> None:
        self.do(self.storage.close())
        self.world.expire()
        self._vanish()
        self.storage = self.do(self._started())
        self._until_rescued()
