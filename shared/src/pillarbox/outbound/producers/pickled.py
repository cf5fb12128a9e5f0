"""Pickles of old producers, read by a machine that runs no code of theirs.

Python's own unpickler calls what a pickle names, and even one that refuses names can be made to hash, resize
or allocate without end. This one knows the instructions that a dict of plain values and aiogram objects
needs, and builds nothing else. Protocols 2 to 5.
"""

import pickletools
import re
from collections.abc import Callable
from decimal import DecimalException
from typing import Any

from pillarbox.errors import MessageRefused
from pillarbox.outbound.producers.pickle_names import Maker, dict_of, list_of, named, value_of
from pillarbox.outbound.producers.values import Built

PICKLE = re.compile(rb"\x80[\x02-\x05]")
MOST_STEPS = 200_000


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
        list_of(self._stack[-1]).append(item)

    def extend(self, _: Any) -> None:
        items = self._to_mark()
        list_of(self._stack[-1]).extend(items)

    def set_item(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        dict_of(self._stack[-1])[key_of(key)] = value

    def set_items(self, _: Any) -> None:
        items = self._to_mark()
        target = dict_of(self._stack[-1])
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key_of(key)] = value

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
        self.push(named(argument))

    def call(self, _: Any) -> None:
        """REDUCE and NEWOBJ: for what is known here, both are a call."""
        arguments, maker = self._stack.pop(), self._stack.pop()
        if not isinstance(maker, Maker) or not isinstance(arguments, tuple):
            raise TypeError
        self.push(maker.make(*arguments))

    def build(self, _: Any) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if not isinstance(target, Built) or target.value is not None:
            raise TypeError
        target.value = value_of(target.name, state)


def key_of(value: Any) -> str:
    """No other type: hashing nested tuples can take for ever."""
    if not isinstance(value, str):
        raise TypeError
    return value


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
