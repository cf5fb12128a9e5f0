"""The Lua scripts of the queue: every change of it is one of them, whole or not at all."""

from functools import lru_cache
from importlib import resources
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from pillarbox.outbound.connection import Client, passing

SENDING = ("file", "take", "again", "lease", "live", "turn", "takeover", "restore", "probed")
PEOPLE = ("lists", "dead_page", "dead_look", "dead_retry", "dead_discard", "cancel", "audited")
FULL_TOO = frozenset({"turn", "live", "lease", "takeover", "restore", "probed"}) | (
    frozenset(PEOPLE) - {"dead_retry"}
)
"""What may run when Redis is full: it frees memory or adds none. The rest is refused before it begins."""


OFFERS = ("common", "limits", "offers")
CLAIMING = (*OFFERS, "claiming")
PARTS = {
    "file": CLAIMING,
    "turn": CLAIMING,
    "live": OFFERS,
    "takeover": OFFERS,
    "restore": OFFERS,
    **dict.fromkeys(PEOPLE, ("common", "acts")),
}
"""What is put before a script, where that is more than `common`."""


class Runs(Protocol):
    """Runs the scripts of one queue."""

    async def call(self, name: str, *args: str | bytes | int) -> Any:
        """Raises QueueUnavailable."""


@lru_cache
def source(name: str) -> str:
    folder = resources.files(__package__)
    shebang = "#!lua flags=allow-oom" if name in FULL_TOO else "#!lua"
    parts = (*PARTS.get(name, ("common",)), name)
    return "\n".join([shebang, *((folder / f"{part}.lua").read_text("utf-8") for part in parts)])


class Scripts:
    """`await scripts.call("file", *args)`; raises QueueUnavailable."""

    def __init__(self, redis: "Redis", queue: str) -> None:
        self._queue = queue
        self._wire = redis.wire if isinstance(redis, Client) else None
        self._scripts = {name: redis.register_script(source(name)) for name in SENDING + PEOPLE}

    async def call(self, name: str, *args: str | bytes | int) -> Any:
        script = self._scripts[name]
        with passing():
            if self._wire is None:
                return await script(keys=[self._queue], args=list(args))
            try:
                return await self._wire.call("EVALSHA", script.sha, 1, self._queue, *args)
            except NoScriptError:
                return await self._wire.call("EVAL", source(name), 1, self._queue, *args)
