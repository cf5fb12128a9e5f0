"""How runs are started, ended and given back, on an inbox in memory."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from pillarbox.errors import StorageRefused
from pillarbox.ids import BotId, Token
from pillarbox.inbox import End, Failed, Finished, FsmKey, FsmWrite, Later, Lease, Released, Turn
from pillarbox_dispatcher.lanes import Handle, Lanes
from pillarbox_dispatcher.watchdog import Watchdog
from tests.support.memory_inbox import MemoryInbox


@asynccontextmanager
async def running(
    inbox: MemoryInbox,
    handle: Handle,
    *,
    concurrency: int = 64,
    lease: float = 30.0,
    grace: float = 5.0,
    longest: float = 0.0,
) -> AsyncIterator[Lanes]:
    watchdog = Watchdog(inbox.renewer, lease=lease, limit=0)
    lanes = Lanes(inbox, handle, watchdog, concurrency=concurrency, poll=0.02, longest=longest)
    stop = asyncio.Event()
    watching = asyncio.create_task(watchdog.run(lanes.lost))
    working = asyncio.create_task(lanes.run(stop, grace))
    try:
        yield lanes
    finally:
        stop.set()
        await working
        watching.cancel()
        await asyncio.wait({watching})


async def until(reached: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not reached():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def test_a_lane_runs_one_update_at_a_time_in_order_and_lanes_side_by_side() -> None:
    inbox = MemoryInbox()
    for n in range(5):
        for lane in range(20):
            inbox.put(f"chat:{lane}", b"%d" % n)
    seen: dict[str, list[int]] = defaultdict(list)
    now: set[str] = set()
    most = 0

    async def handle(lease: Lease) -> End:
        nonlocal most
        assert lease.lane not in now
        now.add(lease.lane)
        most = max(most, len(now))
        await asyncio.sleep(0.005)
        seen[lease.lane].append(int(lease.body))
        now.remove(lease.lane)
        return Finished(lease.token)

    async with running(inbox, handle):
        await until(lambda: inbox.is_empty)
    assert all(order == [0, 1, 2, 3, 4] for order in seen.values())
    assert len(seen) == 20
    assert most == 20


@pytest.mark.parametrize("concurrency", [1, 3, 8])
async def test_no_more_lanes_run_than_concurrency_allows(concurrency: int) -> None:
    inbox = MemoryInbox()
    for lane in range(40):
        inbox.put(f"chat:{lane}")
    running_now = most = 0

    async def handle(lease: Lease) -> End:
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        await asyncio.sleep(0.002)
        running_now -= 1
        return Finished(lease.token)

    async with running(inbox, handle, concurrency=concurrency):
        await until(lambda: inbox.is_empty)
    assert most == concurrency


async def test_ends_wait_for_a_database_that_is_away_and_nothing_runs_twice() -> None:
    inbox = MemoryInbox()
    for lane in range(10):
        inbox.put(f"chat:{lane}")
    runs = 0

    async def handle(lease: Lease) -> End:
        nonlocal runs
        inbox.away = True
        runs += 1
        return Finished(lease.token)

    async with running(inbox, handle):
        await until(lambda: runs == 10)
        await asyncio.sleep(0.1)
        assert inbox.ends == []
        inbox.away = False
        await until(lambda: len(inbox.ends) == 10)
    assert runs == 10


async def test_a_lost_lease_cancels_its_run_and_writes_nothing() -> None:
    inbox = MemoryInbox()
    inbox.put("chat:1")
    started, cancelled = asyncio.Event(), asyncio.Event()
    leases: list[Lease] = []

    async def handle(lease: Lease) -> End:
        leases.append(lease)
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Finished(lease.token)

    async with running(inbox, handle, lease=0.3, grace=0.1):
        await started.wait()
        inbox.lanes.clear()
        inbox.take_away(leases[0].token)
        await asyncio.wait_for(cancelled.wait(), 2)
        await asyncio.sleep(0.05)
        assert inbox.ends == []


async def test_leases_that_cannot_be_renewed_are_cancelled_before_they_end() -> None:
    inbox = MemoryInbox()
    inbox.put("chat:1")
    took = asyncio.Event()
    cancelled_at: list[float] = []
    loop = asyncio.get_running_loop()

    async def handle(lease: Lease) -> End:
        inbox.away = True
        took.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled_at.append(loop.time())
            raise
        return Finished(lease.token)

    async with running(inbox, handle, lease=0.6, grace=0.1):
        await took.wait()
        began = loop.time()
        await until(lambda: bool(cancelled_at), 2)
    assert cancelled_at[0] - began < 0.6
    assert inbox.ends == []


async def test_a_clean_stop_lets_runs_end_gives_back_the_rest_and_starts_nothing() -> None:
    inbox = MemoryInbox()
    quick, slow = inbox.put("chat:quick"), inbox.put("chat:slow")
    started: list[str] = []

    async def handle(lease: Lease) -> End:
        started.append(lease.lane)
        await asyncio.sleep(0.1 if lease.row == quick else 60)
        return Finished(lease.token)

    async with running(inbox, handle, grace=0.3):
        await until(lambda: len(started) == 2)
        inbox.put("chat:quick")
    assert sorted(type(end).__name__ for end in inbox.ends) == ["Finished", "Released"]
    assert inbox.runs[slow] == 0
    assert len(started) == 2


async def test_six_clean_stops_during_a_slow_run_count_none_of_them() -> None:
    inbox = MemoryInbox()
    row = inbox.put("chat:1")

    async def handle(lease: Lease) -> End:
        assert lease.run == 1
        await asyncio.sleep(60)
        return Finished(lease.token)

    for _ in range(6):
        async with running(inbox, handle, grace=0.01):
            await until(lambda: bool(inbox.held))
    assert inbox.runs[row] == 0


async def test_at_a_stop_runs_are_given_back_at_once_and_keep_their_leases() -> None:
    inbox = MemoryInbox()
    ends, waits = inbox.put("chat:1"), inbox.put("chat:2")
    go_on = asyncio.Event()

    async def handle(lease: Lease) -> End:
        await (go_on.wait() if lease.row == ends else asyncio.sleep(60))
        return Finished(lease.token, (b"{}",))

    async with running(inbox, handle, grace=0.4):
        await until(lambda: len(inbox.held) == 2)
        asyncio.get_running_loop().call_later(0.2, go_on.set)
        held = set(inbox.held)
        asyncio.get_running_loop().call_later(0.1, lambda: checked.append(set(inbox.uncounted)))
        checked: list[set[Token]] = []
    assert checked == [held]
    assert sorted(type(end).__name__ for end in inbox.ends) == ["Finished", "Released"]
    assert [lane.runs for lane in inbox.lanes.values()] == [0]
    assert inbox.runs[waits] == 0
    assert len(inbox.outbox) == 1


async def test_a_handler_that_cannot_be_cancelled_keeps_neither_its_place_nor_its_lane() -> None:
    inbox = MemoryInbox()
    inbox.put("chat:1", b"stubborn")
    inbox.put("chat:1")
    ran: list[bytes] = []
    go_on = asyncio.Event()

    async def handle(lease: Lease) -> End:
        ran.append(lease.body)
        while lease.body == b"stubborn" and not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        return Finished(lease.token)

    async with running(inbox, handle, concurrency=1, longest=0.2) as lanes:
        await until(lambda: inbox.is_empty)
        assert ran == [b"stubborn", b"{}"]
        assert lanes.unwilling == 1
        go_on.set()
        await until(lambda: lanes.unwilling == 0)
    failed, finished = inbox.ends
    assert isinstance(failed, Failed)
    assert failed.error == "HandlerTimeout: longer than 0.2 s, and it cannot be cancelled"
    assert isinstance(finished, Finished)


async def test_an_end_whose_lane_is_locked_waits_alone_and_keeps_its_lease() -> None:
    inbox = MemoryInbox()
    inbox.locked = {"chat:1"}
    for lane in range(10):
        inbox.put(f"chat:{lane}")

    async def handle(lease: Lease) -> End:
        return Finished(lease.token, (b"x",))

    async with running(inbox, handle, lease=0.6):
        await until(lambda: len(inbox.ends) == 9)
        assert list(inbox.lanes) == [(42, "chat:1")]
        await asyncio.sleep(1)
        inbox.locked.clear()
        await until(lambda: inbox.is_empty)
    assert len(inbox.ends) == 10
    assert set(inbox.runs.values()) == {1}


async def test_an_end_that_is_locked_beside_one_that_is_refused_keeps_its_lease() -> None:
    inbox, all_run = MemoryInbox(), asyncio.Barrier(3)
    for lane in range(3):
        inbox.put(f"chat:{lane}")
    inbox.locked = {"chat:1"}
    turn = inbox.turn

    async def refusing(ends: Sequence[End], slots: int, **more: bool) -> Turn:
        if any(isinstance(end, Finished) and end.outbox == (b"chat:0",) for end in ends):
            raise StorageRefused("no")
        return await turn(ends, slots, **more)

    async def handle(lease: Lease) -> End:
        await all_run.wait()
        return Finished(lease.token, (lease.lane.encode(),))

    inbox.turn = refusing  # type: ignore[method-assign]
    async with running(inbox, handle, lease=0.6):
        await until(lambda: len(inbox.ends) == 2)
        await asyncio.sleep(1)
        inbox.locked.clear()
        await until(lambda: inbox.is_empty)
    assert sorted(type(end).__name__ for end in inbox.ends) == ["Failed", "Finished", "Finished"]
    assert set(inbox.runs.values()) == {1}


async def test_a_turn_writes_no_more_bytes_than_it_has_time_for() -> None:
    inbox = MemoryInbox()
    for lane in range(10):
        inbox.put(f"chat:{lane}")
    sizes: list[int] = []
    turn = inbox.turn

    async def noted(ends: Sequence[End], slots: int, **more: bool) -> Turn:
        sizes.append(sum(len(body) for end in ends if isinstance(end, Finished) for body in end.outbox))
        return await turn(ends, slots, **more)

    inbox.turn = noted  # type: ignore[method-assign]
    started = asyncio.Barrier(10)

    async def handle(lease: Lease) -> End:
        await started.wait()
        return Finished(lease.token, (b"x" * 3_000_000,))

    async with running(inbox, handle):
        await until(lambda: inbox.is_empty)
    assert max(sizes) == 6_000_000
    assert sum(sizes) == 30_000_000


@pytest.mark.parametrize("how", ["by itself", "by nobody"])
async def test_a_run_that_is_cancelled_and_not_by_us_fails(how: str) -> None:
    inbox = MemoryInbox()
    inbox.put("chat:1")

    async def handle(lease: Lease) -> End:
        if how == "by nobody":
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return Finished(lease.token)

    async with running(inbox, handle):
        await until(lambda: inbox.is_empty)
    assert [type(end) for end in inbox.ends] == [Failed]


async def test_who_lost_the_race_for_a_state_runs_again_soon_and_leaves_nothing_else() -> None:
    inbox = MemoryInbox()
    key = FsmKey(BotId(42), "42:42")
    inbox.put("chat:42", b"one")
    inbox.put("user:42", b"two")
    runs: list[int] = []
    both = asyncio.Event()

    async def handle(lease: Lease) -> End:
        (value,) = await inbox.read_fsm([key])
        runs.append(lease.run)
        if len(runs) == 2:
            both.set()
        await both.wait()
        texts = (value.data or b"") + lease.body
        return Finished(lease.token, (lease.body,), (FsmWrite(key, value.version, None, texts),))

    async with running(inbox, handle):
        await until(lambda: inbox.is_empty)
    assert runs == [1, 1, 1]
    (value,) = await inbox.read_fsm([key])
    assert value.data in (b"onetwo", b"twoone")
    assert sorted(row.body for row in inbox.outbox) == [b"one", b"two"]


async def test_a_handler_that_trips_over_the_stop_has_not_failed() -> None:
    inbox = MemoryInbox()
    inbox.put("chat:1")

    async def handle(lease: Lease) -> End:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return Failed(lease.token, "KeyError: broken by the stop")
        return Finished(lease.token)

    async with running(inbox, handle, grace=0.01):
        await until(lambda: bool(inbox.held))
    assert [type(end) for end in inbox.ends] == [Released]


async def test_later_is_looked_at_when_it_is_due() -> None:
    inbox = MemoryInbox()
    row = inbox.put("chat:1")

    async def handle(lease: Lease) -> End:
        return Finished(lease.token) if len(inbox.ends) == 2 else Later(lease.token, 0.01)

    async with running(inbox, handle):
        await until(lambda: inbox.is_empty)
    assert [type(end) for end in inbox.ends] == [Later, Later, Finished]
    assert inbox.runs[row] == 1


async def test_a_run_that_breaks_fails_its_update_and_no_other() -> None:
    inbox = MemoryInbox()
    bad = inbox.put("chat:bad")
    inbox.put("chat:good")

    async def handle(lease: Lease) -> End:
        if lease.row == bad:
            raise RuntimeError("a bug of ours")
        return Finished(lease.token)

    async with running(inbox, handle):
        await until(lambda: inbox.is_empty)
    assert sorted(type(end).__name__ for end in inbox.ends) == ["Failed", "Finished"]
