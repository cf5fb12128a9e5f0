"""Which key is trusted for a person, on PostgreSQL; every change is audited in its own statement."""

from pillarbox.ids import BotId
from pillarbox.inbox import sql
from pillarbox.inbox.connections import Executes
from pillarbox.inbox.fingerprints import fingerprint_of
from pillarbox.inbox.states import Pin


async def pinned(pool: Executes, bot_id: BotId, user_id: int) -> Pin | None:
    found = await pool.execute(sql.PINNED, [bot_id, user_id])
    return Pin(user_id, *found[0]) if found else None


async def pin(pool: Executes, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
    (row,) = await pool.execute(sql.PIN, [bot_id, user_id, fingerprint_of(fingerprint), by])
    return Pin(user_id, *row)


async def trust(pool: Executes, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
    (row,) = await pool.execute(sql.TRUST, [bot_id, user_id, fingerprint_of(fingerprint), by])
    return Pin(user_id, *row)


async def forget(pool: Executes, bot_id: BotId, user_id: int, by: str) -> Pin | None:
    gone = await pool.execute(sql.FORGET, [bot_id, user_id, by])
    return Pin(user_id, *gone[0]) if gone else None
