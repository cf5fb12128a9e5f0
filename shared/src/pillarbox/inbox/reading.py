"""What people see of the inbox on PostgreSQL. Admin's own queries, with filters, are in its service."""

from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Int8s
from pillarbox.inbox.connections import Executes
from pillarbox.inbox.failures import columns, ids_of
from pillarbox.inbox.filtering import Filter
from pillarbox.inbox.states import Audited, Counts, FailedUpdate, Place


async def failed_updates(
    pool: Executes,
    bot_id: BotId,
    before: FailedUpdate | Place | None,
    limit: int,
    matching: Filter | None = None,
) -> list[FailedUpdate]:
    at, row = (before.failed_at, before.row) if before else ("infinity", 0)
    given = [bot_id, str(at), row, limit, *columns(matching)]
    ids = ids_of(matching)
    found = await (
        pool.execute(sql.FAILED, given) if ids is None else pool.execute(sql.FAILED_OF, [*given, Int8s(ids)])
    )
    return [
        FailedUpdate(RowId(row_id), bot_id, UpdateId(update_id), *rest) for row_id, update_id, *rest in found
    ]


async def audit(pool: Executes, bot_id: BotId, limit: int) -> list[Audited]:
    found = await pool.execute(sql.AUDIT, [bot_id, limit])
    return [Audited(at, bot_id, *rest) for at, *rest in found]


async def knows(pool: Executes, bot_id: BotId) -> bool:
    ((known,),) = await pool.execute(sql.KNOWS, [bot_id])
    return bool(known)


async def counts(pool: Executes, bot_id: BotId) -> Counts:
    (row,) = await pool.execute(sql.COUNTS, [bot_id])
    return Counts(*row)
