"""Values that JSON has no word for, as producers write them, until `plain` resolves them."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pillarbox.outbound.files import FILENAME


@dataclass(frozen=True, slots=True)
class Default:
    """What the bot's own default of this name says."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """An object of the Bot API."""

    fields: Any = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    content: bytes = field(repr=False)
    filename: str | None = field(repr=False)


def upload(content: Any, filename: Any) -> Upload:
    """Raises TypeError. A name that cannot be sent is none."""
    if not isinstance(content, bytes):
        raise TypeError
    good = isinstance(filename, str) and FILENAME.fullmatch(filename)
    return Upload(content, filename if good else None)


@dataclass(frozen=True, slots=True)
class Address:
    """A file that is fetched; with headers only the producer's own program could."""

    url: str = field(repr=False)
    headers: bool


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file that is named by a path."""


class Built:
    """An object of a pickle: named first, and what it is comes later."""

    __slots__ = ("name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None


Special = Default | Model | Upload | Address | OnDisk | datetime | date | timedelta | Decimal | bytes
