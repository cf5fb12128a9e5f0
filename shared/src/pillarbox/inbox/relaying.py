"""The relay: outbox rows leave in one transaction with what files them."""

from collections.abc import Awaitable, Callable, Sequence

from pillarbox.ids import BotId, RowId
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Int4s, Int8s
from pillarbox.inbox.connections import AsyncLink, Pool, deadline, rows
from pillarbox.inbox.states import OutboxRow


async def relay(pool: Pool, file: Callable[[Sequence[OutboxRow]], Awaitable[None]], limit: int) -> int:
    async with pool.session() as link:
        async with deadline():
            await link.execute(b"BEGIN")
        try:
            taken = await _take(link, limit)
            if taken:
                await file(taken)
        except BaseException:
            # What was handed out is handed out again.
            link.pgconn.finish()
            raise
        async with deadline():
            await link.execute(b"COMMIT")
    return len(taken)


async def _take(link: AsyncLink, limit: int) -> list[OutboxRow]:
    async with deadline():
        locked = await rows(link, sql.RELAY_LOCK, [limit])
        if not locked:
            return []
        ours = [Int8s([row_id for row_id, _ in locked]), Int4s([n for _, n in locked])]
        taken = await rows(link, sql.RELAY_TAKE, ours)
    return [OutboxRow(BotId(bot), lane, RowId(row), n, body) for bot, lane, row, n, body in taken]
