"""RETRY_ON: errors of handlers that may pass."""

import builtins
import importlib
from dataclasses import dataclass

from pillarbox.errors import SettingError
from pillarbox.ids import Token
from pillarbox.inbox import Retried
from pillarbox_dispatcher.deadline import HandlerTimeout

EXAMPLE = "for example RETRY_ON=ConnectionError,sqlalchemy.exc.OperationalError"


@dataclass(frozen=True, slots=True)
class Passing:
    """Which errors are tried again, and how: `first` seconds later, then twice as long each time."""

    types: tuple[type[Exception], ...] = ()
    first: float = 1.0
    most: float = 60.0
    times: int = 5

    def takes(self, error: BaseException) -> bool:
        """A run that was too long is none of them, though it is a TimeoutError."""
        return isinstance(error, self.types) and not isinstance(error, HandlerTimeout)

    def end(self, token: Token, error: str) -> Retried:
        return Retried(token, error, self.first, self.most, self.times)


def types(names: str) -> tuple[type[Exception], ...]:
    """Builtin names, or dotted ones, with commas between. SettingError for what is no type of error."""
    return tuple(_type(name.strip()) for name in names.split(",") if name.strip())


def _type(name: str) -> type[Exception]:
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module) if module else builtins, attribute, None)
    except Exception:  # whatever the import of a module of others raises
        found = None
    if not isinstance(found, type) or not issubclass(found, Exception):
        raise SettingError(f"RETRY_ON: {name} is no type of error that can be imported; {EXAMPLE}")
    return found
