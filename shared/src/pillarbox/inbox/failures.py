"""What people do with failed updates: again, or never more."""

from collections.abc import Sequence

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Int8s
from pillarbox.inbox.connections import Pool
from pillarbox.inbox.states import Moved

BATCH = 500


async def requeue(pool: Pool, bot_id: BotId, update_ids: Sequence[UpdateId] | None, by: str) -> Moved:
    return await _move(pool, sql.REQUEUE, bot_id, update_ids, by)


async def discard(pool: Pool, bot_id: BotId, update_ids: Sequence[UpdateId] | None, by: str) -> Moved:
    return await _move(pool, sql.DISCARD, bot_id, update_ids, by)


async def _move(
    pool: Pool, statement: str, bot_id: BotId, update_ids: Sequence[UpdateId] | None, by: str
) -> Moved:
    """In batches, each atomic; what fails while it runs is not touched."""
    wanted = None if update_ids is None else Int8s(update_ids)
    ((newest,),) = await pool.execute(sql.NEWEST_FAILED, [bot_id])
    moved: list[int] = []
    while newest is not None:
        batch = await pool.execute(statement, [bot_id, wanted, newest, by])
        moved += [update_id for (update_id,) in batch]
        if len(batch) < BATCH:
            break
    if update_ids is None:
        return Moved(len(moved))
    return await _sorted_out(pool, bot_id, update_ids, moved)


async def _sorted_out(
    pool: Pool, bot_id: BotId, update_ids: Sequence[UpdateId], moved: Sequence[int]
) -> Moved:
    left = [update_id for update_id in dict.fromkeys(update_ids) if update_id not in set(moved)]
    waiting = {row[0] for row in await pool.execute(sql.WAITING, [bot_id, Int8s(left)])} if left else set()
    return Moved(
        len(moved),
        unknown=[update_id for update_id in left if update_id not in waiting],
        running=[update_id for update_id in left if update_id in waiting],
    )
