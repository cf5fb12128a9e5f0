"""What people see of the inbox on PostgreSQL. Admin's own queries, with filters, are in its service."""

from pillarbox.ids import BotId, RowId, UpdateId
from pillarbox.inbox import sql
from pillarbox.inbox.connections import Pool
from pillarbox.inbox.states import Audited, Counts, FailedUpdate


async def failed_updates(
    pool: Pool, bot_id: BotId, before: FailedUpdate | None, limit: int
) -> list[FailedUpdate]:
    at, row = (before.failed_at, before.row) if before else ("infinity", 0)
    found = await pool.execute(sql.FAILED, [bot_id, str(at), row, limit])
    return [
        FailedUpdate(RowId(row_id), bot_id, UpdateId(update_id), *rest) for row_id, update_id, *rest in found
    ]


async def audit(pool: Pool, bot_id: BotId, limit: int) -> list[Audited]:
    found = await pool.execute(sql.AUDIT, [bot_id, limit])
    return [Audited(at, bot_id, UpdateId(update_id), by, action) for at, update_id, by, action in found]


async def counts(pool: Pool, bot_id: BotId) -> Counts:
    (row,) = await pool.execute(sql.COUNTS, [bot_id])
    return Counts(*row)
