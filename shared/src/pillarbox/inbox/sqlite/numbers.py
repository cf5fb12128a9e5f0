"""Rows, tickets and tokens: one sequence in the file, taken in blocks inside a transaction."""

import sqlite3
from collections.abc import Iterator

from pillarbox.inbox.sqlite import statements


def numbers(db: sqlite3.Connection, block: int = 64) -> Iterator[int]:
    """Ascending, each once. What is left of the last block is skipped for good."""
    while True:
        (last,) = db.execute(statements.NUMBERS, (block,)).fetchone()
        yield from range(last - block + 1, last + 1)
