"""Every Bot API call that came in, in order of arrival, and who waits to see one."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec


class Entry(msgspec.Struct, gc=False, omit_defaults=False):
    """`at` is when the call arrived, Unix seconds; `status` 0 is a call that got no answer."""

    bot_id: int
    method: str
    params: dict[str, Any]
    at: float
    status: int = 0
    effect: bool = False
    message_id: int | None = None
    retry_after: int | None = None
    via: str = "http"


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for; None is anything. `after` is Unix seconds, `text` a part of the text or caption."""

    bot_id: int | None = None
    chat_id: int | str | None = None
    method: str | None = None
    after: float | None = None
    effect: bool | None = None
    status: int | None = None
    text: str | None = None

    def matches(self, entry: Entry) -> bool:
        return (
            (self.bot_id is None or entry.bot_id == self.bot_id)
            and (self.method is None or entry.method.lower() == self.method.lower())
            and (self.chat_id is None or str(entry.params.get("chat_id")) == str(self.chat_id))
            and (self.after is None or entry.at > self.after)
            and (self.effect is None or entry.effect is self.effect)
            and (self.status is None or entry.status == self.status)
            and (self.text is None or self.text in text_of(entry))
        )


def text_of(entry: Entry) -> str:
    text = entry.params.get("text") or entry.params.get("caption")
    return text if isinstance(text, str) else ""


@dataclass(slots=True, eq=False)
class _Waiter:
    query: Query
    missing: int
    met: asyncio.Event = field(default_factory=asyncio.Event)


class Ledger:
    """Keeps the newest `most` calls; `trimmed` counts the others."""

    def __init__(self, most: int) -> None:
        self._entries: deque[Entry] = deque(maxlen=most)
        self._most = most
        self._waiters: list[_Waiter] = []
        self.total = 0
        self.statuses: Counter[int] = Counter()
        """How many calls were answered with which status since the start."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @property
    def trimmed(self) -> int:
        return self.total - len(self._entries)

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.total += 1
        self.statuses[entry.status] += 1
        if self._waiters:
            self._tell(entry)

    def _tell(self, entry: Entry) -> None:
        for waiter in self._waiters:
            if waiter.query.matches(entry):
                waiter.missing -= 1
                if waiter.missing <= 0:
                    waiter.met.set()

    def find(self, query: Query, limit: int | None = None) -> list[Entry]:
        """The matching calls, oldest first; with a limit, the newest of them."""
        if limit is None:
            return [entry for entry in self._entries if query.matches(entry)]
        newest = islice((entry for entry in reversed(self._entries) if query.matches(entry)), limit)
        return list(newest)[::-1]

    async def wait(self, query: Query, count: int, timeout: float) -> bool:
        """Whether `count` calls match within `timeout` seconds; those that came before count too."""
        missing = count - len(self.find(query))
        if missing <= 0:
            return True
        waiter = _Waiter(query, missing)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout):
                await waiter.met.wait()
        except TimeoutError:
            return False
        finally:
            self._waiters.remove(waiter)
        return waiter.missing <= 0

    def end_waits(self) -> None:
        """At the end of the process: whoever waits is told that it did not happen."""
        for waiter in self._waiters:
            waiter.met.set()

    def clear(self) -> None:
        self._entries.clear()
        self.total = 0
