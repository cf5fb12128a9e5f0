"""FSM state outside of a turn: read, and written at once."""

from collections.abc import Sequence

from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Bytes, Int8s, Packed, Texts
from pillarbox.inbox.connections import Pool
from pillarbox.inbox.states import NOTHING, FsmKey, FsmValue, FsmWrite


async def read(pool: Pool, keys: Sequence[FsmKey]) -> list[FsmValue]:
    values = [NOTHING] * len(keys)
    bots, names = Int8s([key.bot_id for key in keys]), Texts([key.key.encode() for key in keys])
    for n, version, state, data in await pool.execute(sql.READ_FSM, [bots, names]):
        values[n - 1] = FsmValue(version, state, data)
    return values


async def write(pool: Pool, writes: Sequence[FsmWrite]) -> bool:
    ((stale,),) = await pool.execute(sql.WRITE_FSM, columns([(0, write) for write in writes]))
    return not stale


def columns(writes: Sequence[tuple[int, FsmWrite]]) -> list[Packed]:
    """One array a column: the writers' tokens, and what each of them writes."""
    return [
        Int8s([writer for writer, _ in writes]),
        Int8s([write.key.bot_id for _, write in writes]),
        Texts([write.key.key.encode() for _, write in writes]),
        Int8s([write.version for _, write in writes]),
        Texts([None if write.state is None else write.state.encode() for _, write in writes]),
        Bytes([write.data for _, write in writes]),
    ]
