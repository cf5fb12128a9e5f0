"""Where a client's answers come from, and which one an address names."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pillarbox.errors import SettingError
from pillarbox.ids import BotId
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin, Progress, Which

PAGE = 100

Mark = Any
"""Where a page ended; what it is only its source knows. None: there is nothing behind it."""


class Source(Protocol):
    """The inbox of one deployment, as people see it. Every method may raise StorageUnavailable."""

    async def open(self) -> None:
        """Raises SettingError where there is no inbox of ours."""

    async def close(self) -> None: ...

    async def knows(self, bot_id: BotId) -> bool: ...

    async def page(self, bot_id: BotId, matching: Filter, mark: Mark) -> tuple[list[FailedUpdate], Mark]: ...

    async def requeue(self, bot_id: BotId, which: Which, progress: Progress) -> Moved: ...

    async def discard(self, bot_id: BotId, which: Which, progress: Progress) -> Moved: ...

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None: ...

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str) -> Pin: ...

    async def forget(self, bot_id: BotId, user_id: int) -> Pin | None: ...


@dataclass(frozen=True, slots=True)
class Address:
    """`http(s)://…` is admin, `postgresql://…` the database, `redis://…` the queue, and a path or
    `sqlite:///…` a file.
    """

    kind: str
    value: str = field(repr=False)

    @classmethod
    def of(cls, where: str | Path) -> "Address":
        """Raises SettingError for what is none of them. A password in it is not told."""
        text = str(where)
        scheme, found, _ = text.partition("://")
        if not found:
            return cls("sqlite", text)
        match scheme.lower():
            case "http" | "https":
                return cls("http", text.rstrip("/"))
            case "postgresql" | "postgres":
                return cls("postgresql", text)
            case "sqlite":
                return cls("sqlite", text)
            case "redis" | "rediss" | "unix":
                return cls("redis", text)
        raise SettingError(
            "give the address of admin (http://…), a PostgreSQL URL (postgresql://…), a SQLite file, or for "
            "messages alone the queue (redis://…)"
        )


def last_of(page: list[FailedUpdate]) -> FailedUpdate | None:
    """The mark of a storage's page."""
    return page[-1] if len(page) == PAGE else None
