"""`POST /webhook/{bot_id}`, as a raw ASGI function: the checks stand in the order of DESIGN's table.

Every answer has an empty body: Telegram would execute a `method` in one.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

from pillarbox.errors import StorageError, StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox import Accepted, Incoming, Malformed
from pillarbox.telemetry import get_logger
from pillarbox_ingest import metrics
from pillarbox_ingest.aside import Keep, set_aside
from pillarbox_ingest.parsing import Unreadable

log = get_logger()

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Put = Callable[[Incoming], Awaitable[Accepted]]
Parse = Callable[[BotId, bytes], Incoming]

PREFIX = "/webhook/"
SECRET = b"x-telegram-bot-api-secret-token"
MOST_BODY = 1 << 20
RETRY_AFTER = b"1"  # Telegram takes it as the delay of its next try; a button's press expires after 150 s

EMPTY = (b"content-length", b"0")
END = {"type": "http.response.body", "body": b""}
HEADERS: dict[int, list[tuple[bytes, bytes]]] = {
    200: [EMPTY],
    401: [EMPTY],
    404: [EMPTY],
    405: [EMPTY, (b"allow", b"POST")],
    413: [EMPTY, (b"connection", b"close")],
    503: [EMPTY, (b"retry-after", RETRY_AFTER)],
}
STARTS = {
    status: {"type": "http.response.start", "status": status, "headers": headers}
    for status, headers in HEADERS.items()
}


class Disconnected(Exception):
    """The client went before its body was here."""


class TooLarge(Exception):
    pass


class Webhook:
    def __init__(
        self,
        bots: Iterable[BotId],
        secrets: Sequence[str],
        parse: Parse,
        put: Put,
        keep: Keep,
        serving: Callable[[], bool],
    ) -> None:
        self._bots = {str(bot_id): bot_id for bot_id in bots}
        self._secrets = [secret.encode() for secret in secrets]
        self._parse = parse
        self._put = put
        self._keep = keep
        self._serving = serving
        self._reading: set[asyncio.Task[Any]] = set()
        self._stopped = False

    def stop(self) -> None:
        """Nobody who is half way through a body is waited for: 503, and Telegram comes again."""
        self._stopped = True
        for task in self._reading:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            status = await self._status(scope, receive)
        except Disconnected:
            return
        except asyncio.CancelledError:  # also by the HTTP server, when its patience with a stop is over
            if not self._stopped:
                raise
            status = 503
        if status != 200:
            metrics.ANSWERS.labels(status).inc()
        await send(STARTS[status])
        await send(END)

    async def _status(self, scope: Scope, receive: Receive) -> int:
        if scope["method"] != "POST":
            return 405
        if not self._knows_secret(scope["headers"]):
            return 401
        bot_id = self._bots.get(scope["path"][len(PREFIX) :])
        if bot_id is None:
            return 404
        if self._stopped:
            return 503
        try:
            body = await self._read(receive)
        except TooLarge:
            return 413
        if not self._serving():
            return 503
        return await self._take(bot_id, body)

    async def _read(self, receive: Receive) -> bytes:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._reading.add(task)
        try:
            return await read(receive)
        finally:
            self._reading.discard(task)

    def _knows_secret(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = next((value for name, value in headers if name == SECRET), None)
        if given is None:
            return False
        matches = [hmac.compare_digest(given, secret) for secret in self._secrets]
        return any(matches)

    async def _take(self, bot_id: BotId, body: bytes) -> int:
        try:
            update = self._parse(bot_id, body)
        except Unreadable as error:
            return await self._set_aside(Malformed(bot_id, error.reason, body))
        try:
            answer = await self._put(update)
        except StorageUnavailable:
            return 503
        if answer is Accepted.REFUSED:
            return await self._set_aside(Malformed(bot_id, "the database refused it", body))
        if answer is Accepted.NEW_BODY:
            log.warning("an update_id came with another body", bot=bot_id, update_id=update.update_id)
        return 200

    async def _set_aside(self, malformed: Malformed) -> int:
        try:
            await set_aside(self._keep, malformed)
        except StorageError:
            return 503
        return 200


async def read(receive: Receive) -> bytes:
    """The whole body; counted, for a Content-Length may lie."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > MOST_BODY:
            raise TooLarge
        if not message.get("more_body", False):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)
