"""Posts updates over raw connections: the next when the last was answered, or at a rate."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import cast

CONNECTIONS, CHATS, SIZE = 40, 1000, 600
BOT_ID, SECRET = 700_001, "for-tests-only"

_update_ids = itertools.count(1)


def request(update_id: int) -> bytes:
    chat = 5000 + update_id % CHATS
    message = {
        "message_id": update_id,
        "date": 1764000000,
        "chat": {"id": chat, "type": "private", "first_name": "Ann"},
        "from": {"id": chat, "is_bot": False, "first_name": "Ann"},
        "text": "",
    }
    update = {"update_id": update_id, "message": message}
    message["text"] = "x" * (SIZE - len(json.dumps(update)))
    body = json.dumps(update).encode()
    head = (
        f"POST /webhook/{BOT_ID} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"X-Telegram-Bot-Api-Secret-Token: {SECRET}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """`answered` is called after each answer; `failed` gets an answer that is not 200."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self.times: list[float] = []
        self.answered: Callable[[Connection], None] = lambda _: None
        self._failed = failed
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class

    def post(self, since: float) -> None:
        self._since = since
        self.transport.write(request(next(_update_ids)))

    def data_received(self, data: bytes) -> None:
        if not data.startswith(b"HTTP/1.1 200"):
            self._failed(RuntimeError(data.split(b"\r\n")[0].decode()))
            return
        self.times.append(time.perf_counter() - self._since)
        self.answered(self)


class Connections:
    """To one server; closed at the end of the block."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> "Connections":
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        made = [
            await loop.create_connection(lambda: Connection(self._fail), "127.0.0.1", self._port)
            for _ in range(CONNECTIONS)
        ]
        self._all = [connection for _, connection in made]
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._all:
            connection.transport.close()

    def _fail(self, error: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)

    async def flood(self, seconds: float) -> list[float]:
        """As many as they get answered. Seconds of each, sorted."""
        until, busy = time.perf_counter() + seconds, len(self._all)

        def answered(connection: Connection) -> None:
            nonlocal busy
            now = time.perf_counter()
            if now < until:
                connection.post(now)
                return
            busy -= 1
            if not busy and not self._ended.done():
                self._ended.set_result(None)

        for connection in self._all:
            connection.answered = answered
            connection.post(time.perf_counter())
        await self._ended
        return self._sorted()

    async def paced(self, rate: float, count: int) -> list[float]:
        """One each `1 / rate` seconds, answered or not the one before. Seconds of each, sorted."""
        free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in self._all:
            connection.answered = free.put_nowait
            free.put_nowait(connection)
        started = time.perf_counter()
        for n in range(count):
            await asyncio.sleep(max(0.0, started + n / rate - time.perf_counter()))
            since = time.perf_counter()
            (await free.get()).post(since)
        for _ in self._all:
            await free.get()
        if self._ended.done():
            self._ended.result()
        return self._sorted()

    def _sorted(self) -> list[float]:
        return sorted(one for connection in self._all for one in connection.times)
