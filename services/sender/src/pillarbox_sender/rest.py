"""Waiting that a stop ends."""

import asyncio
import contextlib


async def rest(stop: asyncio.Event, seconds: float) -> None:
    """Returns after `seconds`, or as soon as `stop` is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
