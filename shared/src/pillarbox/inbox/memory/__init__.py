"""The inbox in memory: for tests, and for a bot whose updates may be asked for again after a crash."""

from pillarbox.inbox.memory.storage import MemoryStorage

__all__ = ["MemoryStorage"]
