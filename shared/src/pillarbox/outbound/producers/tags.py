"""The typed tags of django-aiogram's JSON: an object with such a key stands for a value of another type."""

import base64
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pillarbox.errors import MessageRefused
from pillarbox.outbound.producers.values import Address, Default, Model, OnDisk, Upload, upload


def untagged(value: Any) -> Any:
    """The same with each tagged object as what it stands for. Raises MessageRefused."""
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    for tag, read in TAGS.items():
        if tag in value:
            return _read(tag, read, value)
    return {name: untagged(item) for name, item in value.items()}


def _read(tag: str, read: Callable[[Any, dict[str, Any]], Any], tagged: dict[str, Any]) -> Any:
    try:
        return read(tagged[tag], tagged)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation):
        raise MessageRefused("tag", f"what is in {tag} is not of that type") from None


def _model(_: Any, tagged: dict[str, Any]) -> Model:
    return Model({name: untagged(item) for name, item in tagged["data"].items()})


def _file(kind: Any, tagged: dict[str, Any]) -> Upload | Address | OnDisk:
    match kind:
        case "BufferedInputFile":
            return upload(base64.b64decode(tagged["data"]), tagged.get("filename"))
        case "URLInputFile":
            return Address(_text(tagged["url"]), bool(tagged.get("headers")))
        case "FSInputFile":
            return OnDisk()
    raise ValueError


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


TAGS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "__default__": lambda name, _: Default(_text(name)),
    "__model__": _model,
    "__input_file__": _file,
    "__datetime__": lambda text, _: datetime.fromisoformat(text),
    "__date__": lambda text, _: date.fromisoformat(text),
    "__decimal__": lambda text, _: Decimal(text),
    "__bytes__": lambda text, _: base64.b64decode(text),
}
