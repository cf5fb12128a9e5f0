"""The inbox in one file: WAL, synchronous=FULL, one thread, one process a bot."""

from pillarbox.inbox.sqlite.storage import SQLiteStorage

__all__ = ["SQLiteStorage"]
