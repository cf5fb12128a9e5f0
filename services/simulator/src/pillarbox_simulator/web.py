"""The little HTTP that the simulator needs: a request read whole, an answer sent whole."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

LARGEST_BODY = 60 << 20
"""Bytes; the Bot API takes uploads of 50 MB."""


class TooLarge(Exception):
    pass


async def body_of(receive: Receive) -> bytes:
    """The whole body. Raises TooLarge, and ConnectionResetError when the caller went away."""
    message = await receive()
    if not message.get("more_body"):
        return _part(message)
    parts, size = [_part(message)], 0
    while message.get("more_body"):
        message = await receive()
        parts.append(_part(message))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            raise TooLarge
    return b"".join(parts)


def _part(message: dict[str, Any]) -> bytes:
    if message["type"] == "http.disconnect":
        raise ConnectionResetError
    part: bytes = message.get("body", b"")
    return part


def header(scope: Scope, name: bytes) -> bytes:
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return b""


async def answer(send: Send, status: int, kind: bytes, body: bytes, more: Iterable[Header] = ()) -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
