"""outbound/methods.json is made of the installed aiogram: `python -m tests.support.methods_table`.

For each method of the Bot API that may be queued: which default of a bot a parameter has that is not given.
"""

import json
from pathlib import Path
from typing import Any

import aiogram.methods
from aiogram.client.default import Default
from aiogram.methods import TelegramMethod

from pillarbox.outbound import methods

FILE = Path(methods.__file__).with_name("methods.json")


def table() -> dict[str, dict[str, str]]:
    found = [getattr(aiogram.methods, name) for name in aiogram.methods.__all__]
    ours = [one for one in found if issubclass(one, TelegramMethod) and one is not TelegramMethod]
    named = {method.__api_method__: method for method in ours}
    return {name: _defaults(named[name]) for name in sorted(named) if methods.may_be_queued(name)}


def _defaults(method: type[TelegramMethod[Any]]) -> dict[str, str]:
    fields = method.model_fields.items()
    return {name: field.default.name for name, field in fields if isinstance(field.default, Default)}


def text() -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(defaults)}" for name, defaults in table().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
