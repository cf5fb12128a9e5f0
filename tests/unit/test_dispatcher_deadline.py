"""Deadlines of runs: many, over one timer."""

import asyncio
import time

import pytest

from pillarbox_dispatcher import cancels
from pillarbox_dispatcher.deadline import Deadlines


async def held(deadlines: Deadlines, seconds: float) -> bool:
    """Whether it was cut by its deadline within `seconds`."""
    task = asyncio.current_task()
    assert task is not None
    deadline = deadlines.set(task)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        return deadline.was_why()
    finally:
        deadline.end()
        assert not task.cancelling()
    return False


async def test_each_has_its_own_time() -> None:
    deadlines = Deadlines(0.1)
    ended: list[float] = []

    async def late(after: float) -> None:
        await asyncio.sleep(after)
        started = time.monotonic()
        assert await held(deadlines, 5)
        ended.append(time.monotonic() - started)

    await asyncio.gather(*(late(after) for after in (0.0, 0.03, 0.06, 0.5)))
    assert all(0.1 <= took < 0.2 for took in ended), ended


async def test_who_ends_in_time_is_left_alone_and_holds_up_nobody() -> None:
    deadlines = Deadlines(0.1)
    quick = asyncio.create_task(held(deadlines, 0.01))
    slow = asyncio.create_task(held(deadlines, 5))
    assert [await quick, await slow] == [False, True]


async def test_all_that_are_due_pass_at_once() -> None:
    deadlines = Deadlines(0.05)
    runs = [asyncio.create_task(held(deadlines, 5)) for _ in range(3)]
    await asyncio.sleep(0.01)
    time.sleep(0.1)  # a handler that blocks the loop  # noqa: ASYNC251
    assert all([await run for run in runs])


async def test_none_is_set_for_zero_seconds() -> None:
    assert not await held(Deadlines(0), 0.01)


async def test_a_stop_that_comes_as_well_is_the_reason() -> None:
    deadlines = Deadlines(0.05)

    async def stopped() -> bool:
        task = asyncio.current_task()
        assert task is not None
        deadline = deadlines.set(task)
        cancels.cancel(task)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(5)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(5)
        deadline.end()
        return deadline.was_why()

    assert not await asyncio.create_task(stopped())
