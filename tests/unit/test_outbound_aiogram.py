"""Every method that django-aiogram queues: its params are those that aiogram's own session sends."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from aiogram import Bot
from aiogram.client.default import Default, DefaultBotProperties
from aiogram.methods import TelegramMethod
from pydantic.fields import FieldInfo

from pillarbox.outbound.methods import may_be_queued
from pillarbox.outbound.settings import QueueSettings
from tests.support.aiogram_calls import kwargs_of, sent_by_aiogram, undressed

PROPERTIES: dict[str, Any] = {
    "parse_mode": "HTML",
    "protect_content": True,
    "allow_sending_without_reply": True,
    "show_caption_above_media": True,
    "link_preview_is_disabled": True,
}
BOT = Bot("7:AAAAAAAAAAAAAAAA", default=DefaultBotProperties(**PROPERTIES))
READER = QueueSettings(redis_url="redis://h", default_bot_properties=PROPERTIES).reader
WANTED: dict[str, Callable[[FieldInfo], bool]] = {
    "only what is required": FieldInfo.is_required,
    "everything": lambda field: True,
    "all that has no default of the bot": lambda field: not isinstance(field.default, Default),
}


def methods() -> dict[str, type[TelegramMethod[Any]]]:
    from django_aiogram.api import API_METHODS, CANONICAL_METHODS

    found = {name: CANONICAL_METHODS[name] for name in sorted(API_METHODS)}
    return {name: method for name, method in found.items() if may_be_queued(method.__api_method__)}


def as_text(value: Any) -> Any:
    """As the Bot API reads it: in a form everything is text, and JSON in it."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        value = json.loads(value)
    match value:
        case dict():
            return {name: as_text(one) for name, one in value.items()}
        case list():
            return [as_text(one) for one in value]
        case bool():
            return str(value).lower()
        case str():
            return re.sub(r"^attach://.*", "attach://", value)
    return str(value)


@pytest.mark.parametrize("plain", [False, True], ids=["objects", "dicts"])
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("function", methods())
def test_the_params_are_aiogram_s(function: str, wanted: str, plain: bool) -> None:
    from django_aiogram.wire.serializers import JsonSerializer

    method = methods()[function]
    kwargs = kwargs_of(method, WANTED[wanted])
    if plain:
        kwargs = {name: undressed(value) for name, value in kwargs.items()}
    form, files = sent_by_aiogram(method(**kwargs), BOT)
    element = JsonSerializer().dumps({"function": function, "kwargs": kwargs, "__envelope__": 1})
    read = READER.read(element)
    assert as_text(read.envelope.params) == as_text(form)
    assert list(read.contents.values()) == files
