"""Waiting, and work, that a stop ends."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any


async def rest(stop: asyncio.Event, seconds: float) -> None:
    """Returns after `seconds`, or as soon as `stop` is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Does the work, or what `stop` leaves of it."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})
    if not working.cancelled():
        working.result()
