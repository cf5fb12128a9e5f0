"""One process at a time, by a session lock that PostgreSQL itself takes from a process that falls silent."""

import asyncio
import time

from pillarbox.inbox import sql
from pillarbox.inbox.connections import AsyncLink, connect_directly, deadline
from pillarbox.inbox.hold import Hold, Work

SILENCE = 3.0
"""Seconds without a word on the lock's connection, after which PostgreSQL ends it and frees the lock."""
BEAT = 0.5


async def while_alone(url: str, name: str, work: Work, silence: float = SILENCE) -> None:
    """Waits until nobody else holds `name`, runs `work` to its end, and gives `name` back.

    Raises StorageUnavailable, with `work` cancelled, before another process can hold it. `url` must lead to
    PostgreSQL itself: a pooler would keep the connection, and so the lock, for a process that is gone.
    """
    async with deadline():
        link = await connect_directly(url, options=f"-c idle_session_timeout={int(silence * 1000)}")
    try:
        hold = await _acquire(link, name, silence)
        await _beating(link, hold, work, silence)
    finally:
        link.pgconn.finish()


async def _acquire(link: AsyncLink, name: str, silence: float) -> Hold:
    while True:
        since = time.monotonic()
        async with deadline(silence):
            ((ours,),) = await link.asking.ask(sql.TRY_LOCK, [name])
        if ours:
            return Hold(silence, since)
        await asyncio.sleep(BEAT)


async def _beating(link: AsyncLink, hold: Hold, work: Work, silence: float) -> None:
    """A beat that fails ends `work`; at the latest a while before PostgreSQL ends the session."""
    working = asyncio.ensure_future(work(hold))
    beat = asyncio.ensure_future(_beat(link, hold, silence / 3))
    try:
        await asyncio.wait({working, beat}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, beat):
            task.cancel()
        await asyncio.gather(working, beat, return_exceptions=True)
    if working.done() and not working.cancelled():
        working.result()
        return
    beat.result()


async def _beat(link: AsyncLink, hold: Hold, patience: float) -> None:
    while True:
        await asyncio.sleep(BEAT)
        since = time.monotonic()
        async with deadline(patience):
            await link.asking.ask(sql.PING)
        hold.prolong(since)
