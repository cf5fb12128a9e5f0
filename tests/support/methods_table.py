"""outbound/methods.json is made of the installed aiogram: `python -m tests.support.methods_table`.

For each method of the Bot API that may be queued, and each object in its params: which default of a bot a
field has that is not given.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import aiogram.methods
from aiogram.client.default import Default
from aiogram.methods import TelegramMethod
from aiogram.types.base import TelegramObject
from pydantic import BaseModel

from pillarbox.outbound import methods

FILE = Path(methods.__file__).with_name("methods.json")


def table() -> dict[str, dict[str, Any]]:
    found = [getattr(aiogram.methods, name) for name in aiogram.methods.__all__]
    ours = [one for one in found if issubclass(one, TelegramMethod) and one is not TelegramMethod]
    named = {method.__api_method__: method for method in ours if methods.may_be_queued(method.__api_method__)}
    types = with_defaults(list(named.values()))
    return {
        "methods": {name: _about(named[name], types) for name in sorted(named)},
        "types": {name: _type(types[name], types) for name in sorted(types)},
    }


def with_defaults(models: list[type[BaseModel]]) -> dict[str, type[BaseModel]]:
    """The types in their fields that have a default of a bot, or hold a type that does."""
    reached: dict[str, type[BaseModel]] = {}
    while models:
        model = models.pop()
        for field in model.model_fields.values():
            for inner in _types(field.annotation):
                if inner.__name__ not in reached:
                    reached[inner.__name__] = inner
                    models.append(inner)
    kept = {name: model for name, model in reached.items() if _defaults(model)}
    while True:
        more = {name: model for name, model in reached.items() if name not in kept and _inside(model, kept)}
        if not more:
            return kept
        kept |= more


def _types(annotation: Any) -> Iterator[type[BaseModel]]:
    """A type that refers to itself by a named union is found by its other fields."""
    if isinstance(annotation, type) and issubclass(annotation, TelegramObject):
        yield annotation
    for argument in get_args(annotation):
        yield from _types(argument)


def _defaults(model: type[BaseModel]) -> dict[str, str]:
    fields = model.model_fields.items()
    return {name: field.default.name for name, field in fields if isinstance(field.default, Default)}


def _inside(model: type[BaseModel], types: dict[str, type[BaseModel]]) -> dict[str, list[str]]:
    fields = {
        name: [one.__name__ for one in _types(field.annotation)] for name, field in model.model_fields.items()
    }
    found = {name: [kind for kind in dict.fromkeys(kinds) if kind in types] for name, kinds in fields.items()}
    return {name: kinds for name, kinds in found.items() if kinds}


def _about(model: type[BaseModel], types: dict[str, type[BaseModel]]) -> dict[str, Any]:
    about = {"defaults": _defaults(model), "inside": _inside(model, types)}
    return {name: part for name, part in about.items() if part}


def _type(model: type[BaseModel], types: dict[str, type[BaseModel]]) -> dict[str, Any]:
    kind = model.model_fields.get("type")
    needs = [name for name, field in model.model_fields.items() if field.is_required() and name != "type"]
    told = {"type": kind.default} if kind is not None and isinstance(kind.default, str) else {}
    return {**told, "needs": needs, **_about(model, types)}


def text() -> str:
    return "{\n" + ",\n".join(_section(name, rows) for name, rows in table().items()) + "\n}\n"


def _section(name: str, rows: dict[str, Any]) -> str:
    lines = [f"    {json.dumps(row)}: {json.dumps(about)}" for row, about in rows.items()]
    return f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
