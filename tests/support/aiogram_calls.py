"""Calls of every method that django-aiogram queues, and what aiogram itself would send for them."""

import types
import typing
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Union, get_args, get_origin

from aiogram import Bot
from aiogram.client.default import Default
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.methods import TelegramMethod
from aiogram.types import BufferedInputFile, InputFile
from aiogram.types.base import TelegramObject
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

DAY = datetime(2026, 11, 29, 12, 30, 15, 700_000, tzinfo=UTC)
DEEPEST = 4
SIMPLE: dict[Any, Any] = {
    str: "a <b>text</b> é",
    int: 5,
    float: 1.5,
    bool: False,
    datetime: DAY,
    timedelta: 5,
    typing.Any: "any",
}


def kwargs_of(method: type[TelegramMethod[Any]], wanted: Callable[[FieldInfo], bool]) -> dict[str, Any]:
    fields = {name: field for name, field in method.model_fields.items() if wanted(field)}
    return {name: value_of(field.annotation, 0, wanted) for name, field in fields.items()}


def value_of(kind: Any, depth: int, wanted: Callable[[FieldInfo], bool]) -> Any:
    """A value of an annotation; of a union its first member that is more than None or a default."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if hasattr(kind, "__value__"):
        return value_of(kind.__value__, depth, wanted)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (Union, types.UnionType):
        members = [one for one in arguments if one is not type(None) and one is not Default]
        return value_of(members[0], depth, wanted)
    if origin is list:
        return [value_of(arguments[0], depth, wanted)]
    if origin is typing.Annotated:
        return value_of(arguments[0], depth, wanted)
    return _object(kind, depth, wanted)


def _object(kind: Any, depth: int, wanted: Callable[[FieldInfo], bool]) -> Any:
    if issubclass(kind, InputFile):
        return BufferedInputFile(b"bytes", "name.png")
    if issubclass(kind, Enum):
        return next(iter(kind))
    assert issubclass(kind, TelegramObject), kind
    fields = kind.model_fields.items()
    taken = {n: f for n, f in fields if f.is_required() or (depth < DEEPEST and wanted(f))}
    return kind(**{name: _field(field, depth, wanted) for name, field in taken.items()})


def _field(field: FieldInfo, depth: int, wanted: Callable[[FieldInfo], bool]) -> Any:
    if field.default is not PydanticUndefined and isinstance(field.default, str):
        return field.default
    return value_of(field.annotation, depth + 1, wanted)


def undressed(value: Any) -> Any:
    """Objects as the plain dicts that people write in their place."""
    if isinstance(value, TelegramObject):
        return {
            name: undressed(one) for name, one in value if one is not None and not isinstance(one, Default)
        }
    if isinstance(value, list):
        return [undressed(one) for one in value]
    return value


def sent_by_aiogram(call: TelegramMethod[Any], bot: Bot) -> tuple[dict[str, Any], list[bytes]]:
    """The form that its session makes, and the files in it."""
    session = AiohttpSession()
    files: dict[str, Any] = {}
    form = {}
    for name, value in call.model_dump(warnings=False).items():
        prepared = session.prepare_value(value, bot=bot, files=files)
        if prepared:
            form[name] = prepared
    return form, [file.data for file in files.values()]
