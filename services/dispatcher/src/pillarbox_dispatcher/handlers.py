"""The user's module: HANDLERS names it, and it brings `router` or `setup(dispatcher)`."""

import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from aiogram import BaseMiddleware, Dispatcher, Router
from aiogram.client.default import DefaultBotProperties
from aiogram.fsm.storage.base import BaseStorage
from aiogram.types import TelegramObject

from pillarbox.errors import SettingError
from pillarbox_dispatcher.current import current
from pillarbox_dispatcher.failures import describe
from pillarbox_dispatcher.state import Unlocked

FIX = "fix the module, or name another, for example HANDLERS=bot"


class FailedRun(BaseMiddleware):
    """What a failed run sent and set is dropped before an errors observer adds its own."""

    async def __call__(
        self,
        handler: Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]],
        event: TelegramObject,
        data: dict[str, Any],
    ) -> Any:
        if (run := current()) is not None:
            run.discard()
        return await handler(event, data)


def module(name: str) -> ModuleType:
    """The user's module. SettingError holds the import's own error."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise SettingError(f"HANDLERS: {name} cannot be imported ({_line(error)}); {FIX}") from None


def dispatcher(of: ModuleType, storage: BaseStorage) -> Dispatcher:
    """An aiogram dispatcher with the module's handlers. SettingError when it has none to give."""
    built = Dispatcher(storage=storage, events_isolation=Unlocked())
    built.errors.outer_middleware(FailedRun())
    warnings.filterwarnings("ignore", "Detected unknown update type", RuntimeWarning)
    try:
        _include(of, built)
    except SettingError:
        raise
    except Exception as error:
        raise SettingError(f"HANDLERS: {of.__name__} cannot be set up ({_line(error)}); {FIX}") from None
    return built


def bot_defaults(of: ModuleType) -> DefaultBotProperties | None:
    """The module's `bot_defaults`, such as a parse mode for all that its handlers send."""
    found = getattr(of, "bot_defaults", None)
    if found is not None and not isinstance(found, DefaultBotProperties):
        raise SettingError(
            f"HANDLERS: {of.__name__}.bot_defaults is no DefaultBotProperties; make it one or remove it"
        )
    return found


def _include(of: ModuleType, built: Dispatcher) -> None:
    router, setup = getattr(of, "router", None), getattr(of, "setup", None)
    if callable(setup):
        if inspect.iscoroutinefunction(setup):
            raise TypeError("`setup` must not be async: await in a startup hook")
        setup(built)
    elif isinstance(router, Router):
        built.include_router(router)
    else:
        raise SettingError(
            f"HANDLERS: {of.__name__} has no `router` (aiogram Router) and no `setup(dispatcher)`; add one"
        )


def _line(error: BaseException) -> str:
    return " ".join(describe(error).split())
