"""Methods of the Bot API: which may be queued, and what in their params has a bot's default.

The list is that of Bot API 10.3. A newer method is named in EXTRA_METHODS until the list has it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

NOT_QUEUED = frozenset({"setwebhook", "deletewebhook", "logout", "close"})
"""They would take the bot away from its other programs. What `get…` answers nobody would hear."""

METHOD = re.compile(r"[A-Za-z]{1,64}")
FUNCTION = re.compile(r"[A-Za-z_]{1,96}")


def may_be_queued(method: str) -> bool:
    lower = method.lower()
    return lower not in NOT_QUEUED and not lower.startswith("get")


@dataclass(frozen=True, slots=True)
class Kind:
    """A method, or an object in its params. `defaults`: field to the bot's default that it has where it is
    not given; `inside`: field to the kinds of object in it that have such fields. An object is of a kind
    if it has its `type` and all that it `needs`.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    type: str | None = None
    needs: frozenset[str] = frozenset()

    def has(self, fields: Mapping[str, object]) -> bool:
        return fields.get("type", self.type) == self.type and self.needs <= fields.keys()


NOTHING = Kind()


@lru_cache
def _table() -> dict[str, dict[str, Kind]]:
    text = (resources.files("pillarbox.outbound") / "methods.json").read_text("utf-8")
    return {
        part: {name: _kind(about) for name, about in rows.items()} for part, rows in json.loads(text).items()
    }


def _kind(about: dict[str, Any]) -> Kind:
    inside = {name: tuple(kinds) for name, kinds in about.get("inside", {}).items()}
    return Kind(about.get("defaults", {}), inside, about.get("type"), frozenset(about.get("needs", ())))


def method(name: str) -> Kind:
    return _table()["methods"].get(name, NOTHING)


def kind_of(fields: Mapping[str, object], names: Iterable[str]) -> Kind:
    """The first of these kinds that an object has."""
    kinds = (_table()["types"][name] for name in names)
    return next((kind for kind in kinds if kind.has(fields)), NOTHING)


@lru_cache
def names() -> dict[str, str]:
    """As the Bot API writes them, by the name in lower case."""
    return {name.lower(): name for name in _table()["methods"]}


def of_function(function: str) -> str:
    """`send_message` as `sendMessage`, also where it is not listed."""
    first, *others = [part for part in function.split("_") if part] or [""]
    return names().get(function.replace("_", "").lower()) or first + "".join(map(str.title, others))
