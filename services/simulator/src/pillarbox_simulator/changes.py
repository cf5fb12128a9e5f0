"""What changed, as small tuples: the journal keeps them, the page shows them, and nobody else is asked."""

from collections.abc import Callable
from typing import Any

Change = tuple[Any, ...]
"""The kind, the bot's id, and what the kind needs: see `journal.py` for those that are kept."""


class Changes:
    def __init__(self) -> None:
        self.listeners: list[Callable[[Change], None]] = []

    def publish(self, *change: Any) -> None:
        for listen in self.listeners:
            listen(change)
