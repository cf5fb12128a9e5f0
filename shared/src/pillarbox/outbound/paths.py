"""Paths of files in params: a Bot API server of one's own would read such a file from its disk."""

import re
from typing import Any

import msgspec

PERHAPS_A_PATH = re.compile(rb"(?i)file:|\\u00")
"""An element without a match names none: asked first, as next to none does."""

PATH = re.compile(r"(?i)\s*file:\s*[/\\]")
WRITTEN = frozenset(
    ("text", "message_text", "caption", "title", "description", "question", "explanation", "label", "quote")
) | frozenset(
    ("callback_data", "payload", "start_parameter", "switch_inline_query", "switch_inline_query_current_chat")
)
"""What people or bots write there is no file."""


def names_a_path(value: Any, name: str = "") -> bool:
    """Whether a string in it does; also one in a string that is JSON, which the Bot API takes too."""
    if name in WRITTEN:
        return False
    if isinstance(value, dict):
        return any(names_a_path(one, key) for key, one in value.items())
    if isinstance(value, list):
        return any(names_a_path(one, name) for one in value)
    return isinstance(value, str) and (bool(PATH.match(value)) or _names_one_inside(value))


def _names_one_inside(value: str) -> bool:
    if value.lstrip()[:1] not in ("[", "{"):
        return False
    try:
        return names_a_path(msgspec.json.decode(value))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
