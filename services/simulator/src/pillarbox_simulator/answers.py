"""The envelope of the Bot API's answers, and what may happen to a call instead of an answer."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

JSON = b"application/json"
HTML = b"text/html"

_encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """The call is answered with `ok: false`; the HTTP status is `code` (Bot API, "Making requests")."""

    def __init__(self, code: int, description: str, retry_after: int | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.retry_after = retry_after


def bad_request(description: str) -> Refused:
    return Refused(400, f"Bad Request: {description}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over HTTP."""

    status: int
    body: bytes
    kind: bytes = JSON
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer: a reset after `seconds` (None: when the caller gives up), or when `over` is set."""

    seconds: float | None = 0.0
    over: asyncio.Event | None = field(default=None, compare=False)


def ok(result: Any) -> Answer:
    return Answer(200, b'{"ok":true,"result":' + _encode(result) + b"}")


def refusal(error: Refused) -> Answer:
    envelope: dict[str, Any] = {"ok": False, "error_code": error.code, "description": error.description}
    if error.retry_after is not None:
        envelope["parameters"] = {"retry_after": error.retry_after}
    return Answer(error.code, _encode(envelope), retry_after=error.retry_after)


def page(status: int, title: str) -> Answer:
    """What a proxy in front of the Bot API answers."""
    text = (
        f"<html><head><title>{status} {title}</title></head><body><h1>{status} {title}</h1></body></html>\r\n"
    )
    return Answer(status, text.encode(), HTML)
