"""Methods of the Bot API: which may be queued, and which parameters have a bot's default.

The list is that of Bot API 10.3. A newer method is named in EXTRA_METHODS until the list has it.
"""

import json
import re
from functools import lru_cache
from importlib import resources

NOT_QUEUED = frozenset({"setwebhook", "deletewebhook", "logout", "close"})
"""They would take the bot away from its other programs. What `get…` answers nobody would hear."""

METHOD = re.compile(r"[A-Za-z]{1,64}")
FUNCTION = re.compile(r"[A-Za-z_]{1,96}")


def may_be_queued(method: str) -> bool:
    lower = method.lower()
    return lower not in NOT_QUEUED and not lower.startswith("get")


@lru_cache
def listed() -> dict[str, dict[str, str]]:
    """By the method's name: parameter to the name of the bot's default."""
    text = (resources.files("pillarbox.outbound") / "methods.json").read_text("utf-8")
    return dict(json.loads(text))


@lru_cache
def names() -> dict[str, str]:
    """As the Bot API writes them, by the name in lower case."""
    return {name.lower(): name for name in listed()}


def of_function(function: str) -> str:
    """`send_message` as `sendMessage`, also where it is not listed."""
    first, *others = [part for part in function.split("_") if part] or [""]
    return names().get(function.replace("_", "").lower()) or first + "".join(map(str.title, others))
