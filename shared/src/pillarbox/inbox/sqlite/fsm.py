"""FSM state in the file."""

import sqlite3
from collections.abc import Iterator, Sequence

from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.states import NOTHING, FsmKey, FsmValue, FsmWrite


def read(db: sqlite3.Connection, keys: Sequence[FsmKey]) -> list[FsmValue]:
    return [value(db, key) for key in keys]


def write(db: sqlite3.Connection, writes: Sequence[FsmWrite], versions: Iterator[int], now: int) -> bool:
    """All or none. False: one was written since it was read."""
    if any(value(db, write.key).version != write.version for write in writes):
        return False
    for write in writes:
        if write.is_empty:
            db.execute(statements.FSM_GONE, write.key)
        else:
            row = (*write.key, next(versions), write.state, write.data, now)
            db.execute(statements.FSM_WRITTEN, row)
    return True


def value(db: sqlite3.Connection, key: FsmKey) -> FsmValue:
    found = db.execute(statements.FSM, key).fetchone()
    return NOTHING if found is None else FsmValue(*found)
