"""The relay: outbox rows leave in one transaction with what files them, so many bytes at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import psycopg

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId, RowId
from pillarbox.inbox import sql
from pillarbox.inbox.connections import AsyncLink, Pool, deadline
from pillarbox.inbox.handing import RELAY_BYTES
from pillarbox.inbox.states import OutboxRow

File = Callable[[Sequence[OutboxRow]], Awaitable[None]]

PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16)


async def relay(
    pool: Pool, file: File, limit: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> int:
    """Rows that stand behind another relay's are looked at again soon: that one may not know of them."""
    handed = 0
    for pause in (*PAUSES, None):
        taken, left = await _full_passes(pool, file, limit)
        handed += taken
        if not left or pause is None:
            break
        await sleep(pause)
    return handed


async def _full_passes(pool: Pool, file: File, limit: int) -> tuple[int, int]:
    """As long as it is their size that bounds them: there may be more then, within `limit`."""
    handed = 0
    while True:
        taken, size, left = await _pass(pool, file, limit)
        handed += taken
        if size < RELAY_BYTES or handed >= limit:
            return handed, left


async def _pass(pool: Pool, file: File, limit: int) -> tuple[int, int, int]:
    """How many were handed out, their bytes, and how many were left behind rows of another relay."""
    async with pool.session() as link:
        try:
            taken, left = await _take(link, limit)
            if taken:
                await file(taken)
        except Exception:
            await _give_back(link)
            raise
        except BaseException:
            link.pgconn.finish()
            raise
        async with deadline():
            await link.execute(b"COMMIT")
    return len(taken), sum(len(row.body) for row in taken), left


async def _take(link: AsyncLink, limit: int) -> tuple[list[OutboxRow], int]:
    """Begins, and takes the rows, in one round trip: replies wait for it."""
    async with deadline():
        async with link.pipeline():
            await link.execute(b"BEGIN")
            cursor = await link.execute(sql.RELAY.encode(), [limit, RELAY_BYTES], prepare=True, binary=True)
        found = await cursor.fetchall()
    ours = [
        OutboxRow(BotId(bot), lane, RowId(row), n, body)
        for bot, lane, row, n, body in found
        if body is not None
    ]
    return ours, len(found) - len(ours)


async def _give_back(link: AsyncLink) -> None:
    """Handed out again at once: behind a pooler, a closed connection keeps its rows for a while."""
    try:
        async with deadline():
            await link.execute(b"ROLLBACK")
    except (StorageUnavailable, psycopg.Error):
        link.pgconn.finish()
