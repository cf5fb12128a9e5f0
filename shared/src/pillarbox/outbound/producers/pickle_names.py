"""What the names in a pickle stand for here: values of ours, and a few constructors of Python's own."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from pillarbox.errors import MessageRefused
from pillarbox.outbound.producers.values import Address, Built, Default, Model, OnDisk, upload

MODEL = re.compile(r"aiogram\.types\.[a-z_0-9]+ [A-Z][A-Za-z0-9]*")
ENUM = re.compile(r"aiogram\.enums\.[a-z_0-9]+ [A-Z][A-Za-z0-9]*")
FILES = re.compile(r"aiogram\.types\.input_file (BufferedInputFile|FSInputFile|URLInputFile)")
BUILTINS = ("builtins", "__builtin__")
DEFAULT = "aiogram.client.default Default"
PATH = re.compile(r"pathlib(\._local)? (Pure)?(Posix|Windows)?Path")


class Maker:
    """What a name stands for: never what it stands for in Python."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make


class Enum(Maker):
    """An enumeration of aiogram: its members are their values here."""

    def __init__(self, name: str) -> None:
        super().__init__(_same)
        self._name = name

    def member(self, name: str) -> str | int:
        """By its own name, as Python 3.11 up to 3.11.3 pickles it; aiogram names members by a few rules."""
        if self._name == "Currency":
            return text_of(name)
        return MEMBERS.get(f"{self._name}.{name}", name.lower())


MEMBERS: dict[str, str | int] = {
    "DiceEmoji.BASKETBALL": "\N{BASKETBALL AND HOOP}",
    "DiceEmoji.BOWLING": "\N{BOWLING}",
    "DiceEmoji.DART": "\N{DIRECT HIT}",
    "DiceEmoji.DICE": "\N{GAME DIE}",
    "DiceEmoji.FOOTBALL": "\N{SOCCER BALL}",
    "DiceEmoji.SLOT_MACHINE": "\N{SLOT MACHINE}",
    "ParseMode.HTML": "HTML",
    "ParseMode.MARKDOWN": "Markdown",
    "ParseMode.MARKDOWN_V2": "MarkdownV2",
    "TopicIconColor.BLUE": 7322096,
    "TopicIconColor.GREEN": 9367192,
    "TopicIconColor.RED": 16478047,
    "TopicIconColor.ROSE": 16749490,
    "TopicIconColor.VIOLET": 13338331,
    "TopicIconColor.YELLOW": 16766590,
}


def named(name: str) -> Maker:
    maker = KNOWN.get(name)
    if maker is not None:
        return maker
    if name == DEFAULT or MODEL.fullmatch(name):
        return Maker(lambda: Built(name))
    if ENUM.fullmatch(name):
        return Enum(name.rpartition(" ")[2])
    if PATH.fullmatch(name):
        return Maker(lambda *_: OnDisk())
    shown = "".join(c if c.isprintable() else "?" for c in name[:80])
    raise MessageRefused("pickle", f"the type {shown} is not read")


def _items(items: list[Any] | None = None) -> list[Any]:
    return list_of([] if items is None else items)


def _no_items() -> dict[str, Any]:
    """They are set one by one: a dict made of given pairs would hash any key."""
    return {}


def _same(value: str | int) -> str | int:
    if not isinstance(value, str | int):
        raise TypeError
    return value


def _encoded(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError
    return text_of(text).encode("latin-1")


def _only(kind: type, *types: type) -> Maker:
    """A constructor of Python's own that takes arguments of these types and no other."""

    def make(*arguments: Any) -> Any:
        if not all(isinstance(argument, types) for argument in arguments):
            raise TypeError
        return kind(*arguments)

    return Maker(make)


def _zone(key: str, _: Any = None) -> ZoneInfo:
    try:
        return ZoneInfo(text_of(key))
    except Exception:  # a missing zone is a KeyError, an odd name may be any OSError
        raise ValueError from None


_ZONE = Maker(_zone)


def _attribute(maker: Maker, name: str) -> Maker | str | int:
    """The only ones that are asked for: how a ZoneInfo pickles itself, and the members of an enumeration."""
    if isinstance(maker, Enum):
        return maker.member(text_of(name))
    if maker is not _ZONE or name != "_unpickle":
        raise TypeError
    return maker


KNOWN = {
    "datetime datetime": _only(datetime, bytes, int, timezone, ZoneInfo),
    "datetime date": _only(date, bytes, int),
    "datetime timedelta": _only(timedelta, int),
    "datetime timezone": _only(timezone, timedelta, str),
    "decimal Decimal": _only(Decimal, str),
    "zoneinfo ZoneInfo": _ZONE,
    **dict.fromkeys((f"{place} getattr" for place in BUILTINS), Maker(_attribute)),
    "_codecs encode": Maker(_encoded),
    "collections OrderedDict": Maker(_no_items),
    **dict.fromkeys(
        (f"{place} {kind}" for place in BUILTINS for kind in ("set", "frozenset")), Maker(_items)
    ),
}


def value_of(name: str, given: Any) -> Any:
    """What an object of aiogram is, of the state that its pickle gives it."""
    state = _state(given)
    file = FILES.fullmatch(name)
    if name == DEFAULT:
        return Default(text_of(state["_name"]))
    if file is None:
        return Model(state)
    if file[1] == "BufferedInputFile":
        return upload(state["data"], state.get("filename"))
    if file[1] == "URLInputFile":
        return Address(text_of(state["url"]), bool(state.get("headers")))
    return OnDisk()


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _state(state: Any) -> dict[str, Any]:
    """Of an object with slots, with fields of its own, or a pydantic model's."""
    if isinstance(state, tuple) and len(state) == 2:
        state = {**(state[0] or {}), **(state[1] or {})}
    fields = dict_of(state).get("__dict__", state)
    return {**dict_of(fields), **dict_of(state.get("__pydantic_extra__") or {})}


def list_of(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def dict_of(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value
