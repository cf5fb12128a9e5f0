"""The live feed of the chat page: what changed in a bot's chats, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from pillarbox_simulator.changes import Change

SHOWN = frozenset(
    ("bot", "chat", "message", "deleted", "keyboard", "answered", "action", "commands", "faults", "reset")
)
MOST_WAITING = 2_000
KEEP_ALIVE = 15.0

_encode = msgspec.json.Encoder().encode


class Feed:
    """A listener that falls behind is told to load the page's state anew."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[bytes | None]] = set()

    def publish(self, change: Change) -> None:
        if not self._listeners or change[0] not in SHOWN:
            return
        event = b"event: " + change[0].encode() + b"\ndata: " + _encode(change[1:]) + b"\n\n"
        for queue in self._listeners:
            _put(queue, event)

    async def listen(self) -> AsyncIterator[bytes]:
        """Events until `end`."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield b"retry: 1000\n\n"
            while (event := await _next(queue)) is not None:
                yield event
        finally:
            self._listeners.discard(queue)

    def end(self) -> None:
        for queue in self._listeners:
            queue.put_nowait(None)


def _put(queue: asyncio.Queue[bytes | None], event: bytes) -> None:
    if queue.qsize() < MOST_WAITING:
        queue.put_nowait(event)
        return
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(b"event: behind\ndata: []\n\n")


async def _next(queue: asyncio.Queue[bytes | None]) -> bytes | None:
    try:
        async with asyncio.timeout(KEEP_ALIVE):
            return await queue.get()
    except TimeoutError:
        return b": still here\n\n"
