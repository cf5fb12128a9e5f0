"""How runs are started, ended and given back, on an inbox in memory."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pillarbox.inbox import End, Failed, Finished, Later, Lease, Released
from pillarbox_dispatcher.lanes import Handle, Lanes
from pillarbox_dispatcher.watchdog import Watchdog
from tests.support.memory_inbox import MemoryInbox


@asynccontextmanager
async def running(
    inbox: MemoryInbox, handle: Handle, *, concurrency: int = 64, lease: float = 30.0, grace: float = 5.0
) -> AsyncIterator[Lanes]:
    watchdog = Watchdog(inbox.renewer, lease=lease, limit=0)
    lanes = Lanes(inbox, handle, watchdog, concurrency=concurrency, poll=0.02)
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
