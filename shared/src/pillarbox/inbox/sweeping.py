"""Forgets what is past its time. One process at a time does a batch; another one's turn is no error.

After each batch it rests for as long as that took: accepts, which wait for the same disk, come first.
"""

import asyncio
import time

from pillarbox.inbox import sql
from pillarbox.inbox.asking import Row
from pillarbox.inbox.connections import Pool, deadline

LOCK = 0x50494C4C_53574550  # "PILLSWEP"
BATCH = 250
BEGINNING: Row = ("-infinity", 0, 0)


async def sweep(pool: Pool, seen_for: float, max_failed: int) -> None:
    last = BEGINNING
    while True:
        began = time.monotonic()
        batch = await _alone(pool, sql.SWEEP_SEEN, [seen_for, *last, BATCH])
        if len(batch) < BATCH:
            break
        last = batch[-1]
        await asyncio.sleep(time.monotonic() - began)
    await _alone(pool, sql.SWEEP_FAILED, [max_failed])


async def _alone(pool: Pool, statement: str, parameters: list[object]) -> list[Row]:
    async with deadline(), pool.session() as link, link.transaction():
        ((ours,),) = await link.asking.ask(sql.SWEEP_TURN, [LOCK])
        return await link.asking.ask(statement, parameters) if ours else []
