"""A Bot API that answers every call at once and notes when it came: nothing in the way of a sender."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

BODY = b'{"ok":true,"result":{"message_id":1,"date":0,"chat":{"id":1,"type":"private"}}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
ANSWER = HEAD + BODY


class Sink:
    """`arrived`: when each call had come, by `time.perf_counter`."""

    def __init__(self) -> None:
        self.arrived: list[float] = []
        self.url = ""
        self._wanted = 0
        self._met = asyncio.Event()

    async def wait(self, count: int, timeout: float) -> None:
        self._wanted = count
        self._met.clear()
        if len(self.arrived) < count:
            async with asyncio.timeout(timeout):
                await self._met.wait()

    def call(self) -> None:
        self.arrived.append(time.perf_counter())
        if len(self.arrived) == self._wanted:
            self._met.set()


class _Connection(asyncio.Protocol):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            size = end + 4 + _length(self._buffer[:end])
            if len(self._buffer) < size:
                return
            self._buffer = self._buffer[size:]
            self._sink.call()
            self._transport.write(ANSWER)


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    return int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


@asynccontextmanager
async def running_sink() -> AsyncIterator[Sink]:
    sink = Sink()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(sink), "127.0.0.1", 0)
    sink.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield sink
    finally:
        server.close()
