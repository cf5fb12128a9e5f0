"""Forgets what is past its time. One process at a time does a batch; another one's turn is no error."""

from pillarbox.inbox import sql
from pillarbox.inbox.asking import Row
from pillarbox.inbox.connections import Pool, deadline, rows

LOCK = 0x50494C4C_53574550  # "PILLSWEP"
BATCH = 1000
BEGINNING: Row = ("-infinity", 0, 0)


async def sweep(pool: Pool, seen_for: float, max_failed: int) -> None:
    last = BEGINNING
    while True:
        batch = await _alone(pool, sql.SWEEP_SEEN, [seen_for, *last])
        if len(batch) < BATCH:
            break
        last = batch[-1]
    await _alone(pool, sql.SWEEP_FAILED, [max_failed])


async def _alone(pool: Pool, statement: str, parameters: list[object]) -> list[Row]:
    async with deadline(), pool.session() as link, link.transaction():
        ((ours,),) = await rows(link, sql.SWEEP_TURN, [LOCK])
        return await rows(link, statement, parameters) if ours else []
