"""What people do with failed updates: again, or never more."""

from collections.abc import Sequence
from typing import Any

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Int8s
from pillarbox.inbox.connections import Executes
from pillarbox.inbox.filtering import Filter, Progress, Which, is_int64, unheard
from pillarbox.inbox.states import Moved

BATCH = 500


async def requeue(
    pool: Executes, bot_id: BotId, which: Which, by: str, progress: Progress = unheard
) -> Moved:
    return await _move(pool, (sql.REQUEUE, sql.REQUEUE_OF), bot_id, which, by, progress)


async def discard(
    pool: Executes, bot_id: BotId, which: Which, by: str, progress: Progress = unheard
) -> Moved:
    return await _move(pool, (sql.DISCARD, sql.DISCARD_OF), bot_id, which, by, progress)


async def _move(
    pool: Executes, statements: tuple[str, str], bot_id: BotId, which: Which, by: str, progress: Progress
) -> Moved:
    """In batches, each atomic; what fails while it runs is not touched."""
    ids = ids_of(which)
    statement = statements[ids is not None]
    ((newest,),) = await pool.execute(sql.NEWEST_FAILED, [bot_id])
    given = [bot_id, None if ids is None else Int8s(ids), newest, by, *columns(which)]
    moved: list[int] = []
    while newest is not None:
        batch = await pool.execute(statement, given)
        moved += [update_id for (update_id,) in batch]
        progress(len(batch))
        if len(batch) < BATCH:
            break
    if which is None or isinstance(which, Filter):
        return Moved(len(moved))
    return await _sorted_out(pool, bot_id, which, moved)


def ids_of(which: Which) -> list[UpdateId] | None:
    """Those that a database can have; None: it is not by ids that they are chosen."""
    given = which.update_ids if isinstance(which, Filter) else which
    return None if given is None else [update_id for update_id in given if is_int64(update_id)]


def columns(which: Which) -> list[Any]:
    """The last parameters of a statement that has MATCHING in it."""
    matching = which if isinstance(which, Filter) else Filter()
    return [matching.since, matching.until, matching.kind, matching.chat_id, matching.error]


async def _sorted_out(
    pool: Executes, bot_id: BotId, update_ids: Sequence[UpdateId], moved: Sequence[int]
) -> Moved:
    done = set(moved)
    left = [update_id for update_id in dict.fromkeys(update_ids) if update_id not in done]
    asked = Int8s([update_id for update_id in left if is_int64(update_id)])
    waiting = {row[0] for row in await pool.execute(sql.WAITING, [bot_id, asked])} if left else set()
    return Moved(
        len(moved),
        unknown=[update_id for update_id in left if update_id not in waiting],
        running=[update_id for update_id in left if update_id in waiting],
    )
