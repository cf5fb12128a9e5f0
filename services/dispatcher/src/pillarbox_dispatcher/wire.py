"""The wire form of a Bot API method: values as the Bot API's JSON takes them, the bot's defaults resolved.

It is made of the whole model, as aiogram's own session does: `exclude_unset` loses the `type` of a union's
member, and an album of photos would leave as one of audios.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from aiogram import Bot
from aiogram.client.default import Default
from aiogram.methods import TelegramMethod
from aiogram.types import InputFile, TelegramObject


class UploadRefused(TypeError):
    """A file's bytes cannot wait in the outbox yet."""

    def __init__(self, fix: str = "await the method directly (await message.answer_photo(...))") -> None:
        super().__init__(f"the outbox takes files by file_id or URL; to upload one, {fix}")


def params(method: TelegramMethod[Any], bot: Bot) -> dict[str, Any]:
    """`params` of the method's envelope. Raises UploadRefused for an InputFile."""
    dumped = method.model_dump(warnings=False)
    prepared = {name: value(raw, bot) for name, raw in dumped.items() if raw is not None}
    return {name: one for name, one in prepared.items() if one is not None and one != ""}


def value(raw: Any, bot: Bot) -> Any:
    """One JSON value. None is "not given", here and inside."""
    if raw is None or (isinstance(raw, str | int | float) and not isinstance(raw, Enum)):
        return raw
    if isinstance(raw, dict):
        return {key: one for key, item in raw.items() if (one := value(item, bot)) is not None}
    if isinstance(raw, list | tuple | set):
        return [one for item in raw if (one := value(item, bot)) is not None]
    return _resolved(raw, bot)


def _resolved(raw: Any, bot: Bot) -> Any:
    match raw:
        case Default():
            return value(bot.default[raw.name], bot)
        case Enum():
            return value(raw.value, bot)
        case timedelta():
            return round((datetime.now(UTC) + raw).timestamp())
        case datetime():
            return round(raw.timestamp())
        case TelegramObject():
            return value(raw.model_dump(warnings=False), bot)
        case InputFile():
            raise UploadRefused
    raise TypeError(f"a {type(raw).__name__} has no form in the Bot API's JSON")
