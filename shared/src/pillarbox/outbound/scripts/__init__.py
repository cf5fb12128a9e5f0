"""The Lua scripts of the queue: every change of it is one of them, whole or not at all."""

from functools import lru_cache
from importlib import resources
from typing import Any

from redis.asyncio import Redis

from pillarbox.outbound.connection import passing

FULL_TOO = frozenset({"turn", "live", "lease", "takeover", "restore", "probed"})
"""What may run when Redis is full: it frees memory or adds none. The rest is refused before it begins."""


@lru_cache
def source(name: str) -> str:
    folder = resources.files(__package__)
    shebang = "#!lua flags=allow-oom" if name in FULL_TOO else "#!lua"
    return "\n".join([shebang, *((folder / f"{part}.lua").read_text("utf-8") for part in ("common", name))])


class Scripts:
    """`await scripts.call("file", *args)`; raises QueueUnavailable."""

    def __init__(self, redis: "Redis", queue: str) -> None:
        names = ("file", "take", "again", "lease", "live", "turn", "takeover", "restore", "probed", "people")
        self._queue = queue
        self._scripts = {name: redis.register_script(source(name)) for name in names}

    async def call(self, name: str, *args: str | bytes | int) -> Any:
        with passing():
            return await self._scripts[name](keys=[self._queue], args=list(args))
