"""The calls of django-aiogram: `function` with `kwargs` in an envelope, and the older flat form."""

from dataclasses import dataclass, field
from typing import Any

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.methods import FUNCTION

ENVELOPE = "__envelope__"
VERSION = 1


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """`function` is a method's name as aiogram writes it: send_message."""

    function: str
    kwargs: dict[str, Any] = field(repr=False)
    bot: BotId | None = None
    trace: str | None = None


def is_function_call(fields: dict[str, Any]) -> bool:
    return ENVELOPE in fields or ("function" in fields and "method" not in fields)


def function_call(fields: dict[str, Any]) -> FunctionCall:
    """Raises MessageRefused, and MessageKept for an envelope of a newer version."""
    version = fields.get(ENVELOPE)
    if version is None:
        return FunctionCall(_function(fields), {n: v for n, v in fields.items() if n not in _ABOUT})
    if type(version) is not int or version < VERSION:
        raise MessageRefused("envelope", "its version is not one that was ever written")
    if version > VERSION:
        raise MessageKept("version")
    kwargs = fields.get("kwargs", {})
    if not isinstance(kwargs, dict):
        raise MessageRefused("envelope", "kwargs must be an object")
    return FunctionCall(_function(fields), kwargs, _bot(fields), _trace(fields))


_ABOUT = frozenset({"function", ENVELOPE})


def _function(fields: dict[str, Any]) -> str:
    function = fields.get("function")
    if not isinstance(function, str) or not FUNCTION.fullmatch(function):
        raise MessageRefused("method", "function must be the name of a Bot API method")
    return function


def _bot(fields: dict[str, Any]) -> BotId | None:
    """One that cannot be read is refused: the only bot here may not be the one that was meant."""
    if "bot" not in fields:
        return None
    bot = fields["bot"]
    if type(bot) is not int or not 0 < bot < 1 << 63:
        raise MessageRefused("bot", "it must be the number before the colon of a token")
    return BotId(bot)


def _trace(fields: dict[str, Any]) -> str | None:
    """Never the message's `id`: all sends of one update share a correlation id."""
    value = fields.get("correlation_id")
    return value if isinstance(value, str) and value.isalnum() and len(value) <= 64 else None
