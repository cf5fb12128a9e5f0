"""Pickles of old producers, read by a machine that runs no code of theirs.

Python's own unpickler calls what a pickle names, and even one that refuses names can be made to hash, resize
or allocate without end. This one knows the instructions that a dict of plain values and aiogram objects
needs, and builds nothing else. Protocols 2 to 5.
"""

import pickletools
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, DecimalException
from typing import Any
from zoneinfo import ZoneInfo

from pillarbox.errors import MessageRefused
from pillarbox.outbound.producers.values import Address, Built, Default, Model, OnDisk, upload

PICKLE = re.compile(rb"\x80[\x02-\x05]")
MOST_STEPS = 1_000_000
MODEL = re.compile(r"aiogram\.types\.[a-z_0-9]+ [A-Z][A-Za-z0-9]*")
ENUM = re.compile(r"aiogram\.enums\.[a-z_0-9]+ [A-Z][A-Za-z0-9]*")
FILES = re.compile(r"aiogram\.types\.input_file (BufferedInputFile|FSInputFile|URLInputFile)")
BUILTINS = ("builtins", "__builtin__")
DEFAULT = "aiogram.client.default Default"
PATH = re.compile(r"pathlib(\._local)? (Pure)?(Posix|Windows)?Path")


def unpickled(element: bytes) -> Any:
    """Raises MessageRefused. The values are those of `values`, which `tags` gives too."""
    try:
        return _Machine().run(element)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, RecursionError, DecimalException):
        raise MessageRefused("pickle", "it is cut off, or no pickle of a message") from None


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def run(self, element: bytes) -> Any:
        for step, (opcode, argument, _) in enumerate(pickletools.genops(element)):
            if step > MOST_STEPS:
                raise MessageRefused("too_big")
            if opcode.name == "STOP":
                return self._stack.pop()
            act = ACTS.get(opcode.name)
            if act is None:
                raise MessageRefused("pickle", f"the instruction {opcode.name} is not read")
            act(self, argument)
        raise ValueError

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def mark(self, _: Any) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def tuple(self, _: Any) -> None:
        self.push(tuple(self._to_mark()))

    def short_tuple(self, size: int) -> None:
        items = self._stack[-size:]
        if len(items) < size:
            raise IndexError
        self._stack[-size:] = [tuple(items)]

    def items(self, _: Any) -> None:
        """A set is a list here: nothing of a message is one."""
        self.push(self._to_mark())

    def append(self, _: Any) -> None:
        item = self._stack.pop()
        _list(self._stack[-1]).append(item)

    def extend(self, _: Any) -> None:
        items = self._to_mark()
        _list(self._stack[-1]).extend(items)

    def set_item(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        _dict(self._stack[-1])[_key(key)] = value

    def set_items(self, _: Any) -> None:
        items = self._to_mark()
        target = _dict(self._stack[-1])
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_key(key)] = value

    def remember(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def get(self, index: int) -> None:
        self.push(self._memo[index])

    def name(self, argument: str | None) -> None:
        if argument is None:
            name, module = self._stack.pop(), self._stack.pop()
            argument = f"{module} {name}"
        self.push(_named(argument))

    def call(self, _: Any) -> None:
        """REDUCE and NEWOBJ: for what is known here, both are a call."""
        arguments, maker = self._stack.pop(), self._stack.pop()
        if not isinstance(maker, _Maker) or not isinstance(arguments, tuple):
            raise TypeError
        self.push(maker.make(*arguments))

    def build(self, _: Any) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if not isinstance(target, Built) or target.value is not None:
            raise TypeError
        target.value = _value(target.name, _state(state))


class _Maker:
    """What a name stands for: never what it stands for in Python."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _dict(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _key(value: Any) -> str:
    """No other type: hashing nested tuples can take for ever."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _named(name: str) -> _Maker:
    maker = KNOWN.get(name)
    if maker is not None:
        return maker
    if name == DEFAULT or MODEL.fullmatch(name):
        return _Maker(lambda: Built(name))
    if ENUM.fullmatch(name):
        return _Maker(_same)
    if PATH.fullmatch(name):
        return _Maker(lambda *_: OnDisk())
    shown = "".join(c if c.isprintable() else "?" for c in name[:80])
    raise MessageRefused("pickle", f"the type {shown} is not read")


def _items(items: list[Any] | None = None) -> list[Any]:
    return _list([] if items is None else items)


def _same(value: str | int) -> str | int:
    if not isinstance(value, str | int):
        raise TypeError
    return value


def _encoded(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError
    return text.encode("latin-1")


def _only(kind: type, *types: type) -> _Maker:
    """A constructor of Python's own that takes arguments of these types and no other."""

    def make(*arguments: Any) -> Any:
        if not all(isinstance(argument, types) for argument in arguments):
            raise TypeError
        return kind(*arguments)

    return _Maker(make)


def _zone(key: str, _: Any = None) -> ZoneInfo:
    try:
        return ZoneInfo(key)
    except Exception:  # a missing zone is a KeyError, an odd name may be any OSError
        raise ValueError from None


_ZONE = _Maker(_zone)


def _attribute(maker: _Maker, name: str) -> _Maker:
    """The only one that is asked for: how a ZoneInfo pickles itself."""
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
    **dict.fromkeys((f"{place} getattr" for place in BUILTINS), _Maker(_attribute)),
    "_codecs encode": _Maker(_encoded),
    "collections OrderedDict": _Maker(dict),
    **dict.fromkeys(
        (f"{place} {kind}" for place in BUILTINS for kind in ("set", "frozenset")), _Maker(_items)
    ),
}

ACTS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, _: None),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Machine.push),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _Machine.push),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), _Machine.push),
    "MARK": _Machine.mark,
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_SET"), lambda machine, _: machine.push([])),
    "TUPLE": _Machine.tuple,
    "TUPLE1": lambda machine, _: machine.short_tuple(1),
    "TUPLE2": lambda machine, _: machine.short_tuple(2),
    "TUPLE3": lambda machine, _: machine.short_tuple(3),
    "FROZENSET": _Machine.items,
    "APPEND": _Machine.append,
    **dict.fromkeys(("APPENDS", "ADDITEMS"), _Machine.extend),
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "MEMOIZE": _Machine.remember,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    **dict.fromkeys(("GLOBAL", "STACK_GLOBAL"), _Machine.name),
    **dict.fromkeys(("REDUCE", "NEWOBJ"), _Machine.call),
    "BUILD": _Machine.build,
}


def _value(name: str, state: dict[str, Any]) -> Any:
    file = FILES.fullmatch(name)
    if name == DEFAULT:
        return Default(_text(state["_name"]))
    if file is None:
        return Model(state)
    if file[1] == "BufferedInputFile":
        return upload(state["data"], state.get("filename"))
    if file[1] == "URLInputFile":
        return Address(_text(state["url"]), bool(state.get("headers")))
    return OnDisk()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _state(state: Any) -> dict[str, Any]:
    """Of an object with slots, with fields of its own, or a pydantic model's."""
    if isinstance(state, tuple) and len(state) == 2:
        state = {**(state[0] or {}), **(state[1] or {})}
    fields = _dict(state).get("__dict__", state)
    return {**_dict(fields), **_dict(state.get("__pydantic_extra__") or {})}
