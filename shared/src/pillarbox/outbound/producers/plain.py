"""Params as the Bot API's JSON takes them, made of values of other types; files are set apart."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pillarbox.errors import MessageRefused
from pillarbox.outbound import methods
from pillarbox.outbound.files import MOST_BYTES, MOST_FILES
from pillarbox.outbound.methods import Kind
from pillarbox.outbound.producers.values import Address, Built, Default, Model, OnDisk, Special, Upload

DEEPEST = 64
NOT_GIVEN = (None, "")
"""At the top of params aiogram sends neither."""


@dataclass(slots=True)
class Plain:
    """One message's. `room` is how many characters and values it may have; `defaults` are the bot's."""

    defaults: Mapping[str, Any]
    now: float
    room: int
    uploads: list[Upload] = field(default_factory=list)

    def params(self, method: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Raises MessageRefused."""
        params = self._object(given, 0, methods.method(method))
        return {name: value for name, value in params.items() if value not in NOT_GIVEN}

    def value(self, value: Any, depth: int, kinds: tuple[str, ...] = ()) -> Any:
        """None is "not given", here and inside. `kinds`: what a plain dict here may stand for."""
        self._spend(1 + len(value) if isinstance(value, str) else 1)
        if depth > DEEPEST:
            raise MessageRefused("params", f"they are nested more than {DEEPEST} deep")
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return _finite(value)
            case list() | tuple():
                items = (self.value(item, depth + 1, kinds) for item in value)
                return [item for item in items if item is not None]
            case dict():
                return self._object(value, depth, methods.kind_of(value, kinds))
            case Model():
                return self.value(value.fields, depth + 1)
            case Built():
                return self.value(value.value, depth + 1)
        return self._special(value, depth)

    def _object(self, given: Mapping[str, Any], depth: int, kind: Kind) -> dict[str, Any]:
        """With the bot's defaults where nothing is given; an object of aiogram has brought its own."""
        defaults = {name: Default(default) for name, default in kind.defaults.items() if name not in given}
        self._spend(sum(map(len, given)))
        items = (
            (name, self.value(value, depth + 1, kind.inside.get(name, ())))
            for name, value in {**given, **defaults}.items()
        )
        return {name: item for name, item in items if item is not None}

    def _spend(self, characters: int) -> None:
        self.room -= characters
        if self.room < 0:
            raise MessageRefused("too_big")

    def _special(self, value: Special, depth: int) -> Any:
        match value:
            case Default():
                return self.value(self.defaults.get(value.name), depth + 1)
            case Upload():
                return self._upload(value)
            case Address():
                return _address(value)
            case OnDisk():
                raise MessageRefused("file_path", "send its bytes, a file_id or a URL instead")
            case timedelta():
                return round(self.now + value.total_seconds())
            case date():
                return _unix(value)
            case Decimal():
                return _finite(float(value) if value.is_finite() else math.nan)
        raise MessageRefused("params", f"a {type(value).__name__} has no form in the Bot API's JSON")

    def _upload(self, upload: Upload) -> str:
        self.uploads.append(upload)
        if len(self.uploads) > MOST_FILES or sum(len(one.content) for one in self.uploads) > MOST_BYTES:
            raise MessageRefused("too_big", f"more than {MOST_BYTES} bytes, or {MOST_FILES}, of files")
        return f"attach://{name_of(len(self.uploads))}"


def name_of(number: int) -> str:
    return f"file{number}"


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise MessageRefused("params", "a number is not finite")
    return number


def _address(address: Address) -> str:
    """Telegram fetches it, so that no queue makes a sender ask its own network."""
    if address.headers:
        raise MessageRefused("file_headers", "Telegram fetches a URL itself, without headers; send the bytes")
    if not address.url.lower().startswith(("http://", "https://")):
        raise MessageRefused("file_path", "a file's URL begins with http:// or https://")
    return address.url


def _unix(day: date) -> int:
    """As its own consumer: where no zone is given, it is the sender's."""
    moment = day if isinstance(day, datetime) else datetime.combine(day, time())
    try:
        return round(moment.timestamp())
    except (OverflowError, ValueError, OSError):
        raise MessageRefused("params", "a date is out of range") from None
