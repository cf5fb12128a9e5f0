"""A body as Telegram sent it: byte for byte, and as JSON where it is JSON."""

import base64
import json

import msgspec


def as_json(body: bytes) -> msgspec.Raw | None:
    """The same bytes, to be put into a JSON document as they are; None where they are no JSON."""
    return msgspec.Raw(body) if _read(body) else None


def as_base64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def pretty(body: bytes) -> str:
    """For eyes: indented JSON, or the text with what is not UTF-8 escaped. Numbers keep all their digits."""
    document = _read(body)
    if document is None:
        return body.decode("utf-8", "backslashreplace")
    text = json.dumps(document[0], indent=2, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _read(body: bytes) -> tuple[object] | None:
    try:
        return (json.loads(body.decode("utf-8"), parse_constant=_refuse),)
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> None:
    raise ValueError(word)
