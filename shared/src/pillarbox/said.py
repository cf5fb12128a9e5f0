"""What an answer of the Bot API says (Bot API, "Making requests"), whatever JSON came in its place."""

import re
from typing import Any

import msgspec

LONGEST_WAIT = 86400.0
"""Seconds: whoever asks for a longer pause, Telegram or what stands between, is asked again after a day."""
MOST_DESCRIPTION = 300


class Parameters(msgspec.Struct):
    retry_after: float | None = None


class Said(msgspec.Struct):
    """The envelope of every answer; the result is not looked at."""

    ok: bool = False
    error_code: int | None = None
    description: str = ""
    parameters: Parameters | None = None

    @property
    def retry_after(self) -> float | None:
        """Seconds, of the parameters, else of the text."""
        if self.parameters is not None and self.parameters.retry_after is not None:
            return self.parameters.retry_after
        number = re.search(r"retry after (\d{1,9})", self.description.lower())
        return float(number[1]) if number else None

    @property
    def words(self) -> str:
        """The description, for a log or a list: one short line."""
        return "".join(c if c.isprintable() else " " for c in self.description[:MOST_DESCRIPTION])


_decoder = msgspec.json.Decoder(Said)


def read(raw: bytes) -> Said | None:
    """None where no object can be read. A member of a wrong type is as if it were not there."""
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        return _loose(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def bounded(seconds: float) -> float:
    """A wait that every clock can count."""
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _loose(raw: bytes) -> Said | None:
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    code, description = found.get("error_code"), found.get("description")
    return Said(
        ok=found.get("ok") is True,
        error_code=code if type(code) is int else None,
        description=description if isinstance(description, str) else "",
        parameters=_parameters(found.get("parameters")),
    )


def _parameters(found: Any) -> Parameters | None:
    after = found.get("retry_after") if isinstance(found, dict) else None
    if isinstance(after, bool) or not isinstance(after, (int, float)):
        return None
    return Parameters(float(min(max(after, -1), 2 * LONGEST_WAIT)))
