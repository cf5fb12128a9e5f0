"""What decides how an element that an app pushed is read."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from pillarbox.outbound.methods import METHOD, may_be_queued
from pillarbox.outbound.reading import Reader
from pillarbox.settings import RedisSettings, Words

LINK_PREVIEW = {
    "link_preview_is_disabled": "is_disabled",
    "link_preview_prefer_small_media": "prefer_small_media",
    "link_preview_prefer_large_media": "prefer_large_media",
    "link_preview_show_above_text": "show_above_text",
}
PROPERTIES = {"parse_mode", "disable_notification", "protect_content", "allow_sending_without_reply"} | {
    "link_preview",
    "show_caption_above_media",
    *LINK_PREVIEW,
}
"""Of aiogram's DefaultBotProperties."""


def _object(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError("it must be a JSON object") from None


def _known(value: dict[str, Any]) -> dict[str, Any]:
    """Under a bot's id, its own."""
    own = {name: one for name, one in value.items() if name.isdigit()}
    if not all(isinstance(one, dict) for one in own.values()):
        raise ValueError("under a bot's id there must be a JSON object")
    shared = {name: one for name, one in value.items() if name not in own}
    return _properties(shared) | {bot: _properties(one) for bot, one in own.items()}


def _properties(value: dict[str, Any]) -> dict[str, Any]:
    """With the link preview made of its parts, as aiogram makes it."""
    unknown = sorted(value.keys() - PROPERTIES)
    if unknown:
        raise ValueError(f"aiogram has no default {unknown[0][:64]}")
    parts = {part: value[name] for name, part in LINK_PREVIEW.items() if value.get(name) is not None}
    if any(parts.values()) and value.get("link_preview") is None:
        return value | {"link_preview": parts}
    return value


Defaults = Annotated[dict[str, Any], NoDecode, BeforeValidator(_object), AfterValidator(_known)]


class QueueSettings(RedisSettings):
    """What is read of an element that an app pushed."""

    extra_methods: Words = Field(
        [],
        description="methods that may be queued besides those of Bot API 10.3, comma or newline between",
        examples=["sendHologram"],
    )
    allow_pickle: bool = Field(
        False, description="read pickled payloads of old producers", examples=["false"]
    )
    default_bot_properties: Defaults = Field(
        {},
        description="JSON: what calls of django-aiogram leave to the sender; under a bot's id, its own",
        examples=['{"parse_mode": "HTML"}'],
    )

    @field_validator("extra_methods")
    @classmethod
    def _extra_methods(cls, value: list[str]) -> list[str]:
        for method in value:
            if not METHOD.fullmatch(method):
                raise ValueError("it names methods of the Bot API, as sendMessage")
            if not may_be_queued(method):
                raise ValueError(f"{method} may never be queued")
        return value

    @property
    def reader(self) -> Reader:
        return Reader(
            max_message=self.max_message,
            listed=True,
            extra_methods=frozenset(method.lower() for method in self.extra_methods),
            allow_pickle=self.allow_pickle,
            defaults=self.default_bot_properties,
        )
