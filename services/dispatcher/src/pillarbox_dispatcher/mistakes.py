"""Mistakes of handlers that raise nothing: what was to be sent is dropped, or is no message at all."""

import ast
import inspect
import os
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from functools import wraps
from typing import Any

from aiogram import Dispatcher
from aiogram.methods import TelegramMethod

from pillarbox.telemetry import get_logger
from pillarbox_dispatcher import metrics

SHORTCUTS = ("answer", "reply", "edit_", "delete", "forward", "copy_to", "pin", "unpin", "react")
"""How aiogram's methods of an event begin that make a call and do not send it."""

log = get_logger()

Handler = Callable[..., Awaitable[Any]]


def watch(dispatcher: Dispatcher) -> None:
    """Tells now of calls that are made and dropped, and from now on of results that cannot be sent."""
    for router in dispatcher.chain_tail:
        for observer in router.observers.values():
            for handler in observer.handlers:
                if inspect.iscoroutinefunction(handler.callback) and handler.callback.__module__ != _OURS:
                    _tell_dropped(handler.callback)
                    handler.callback = _watched(handler.callback)


_OURS = Dispatcher.__module__


def _tell_dropped(handler: Handler) -> None:
    for place in _dropped(inspect.unwrap(handler)):
        metrics.mistakes.labels("dropped").inc()
        log.warning("a handler makes a call and drops it: return it or await it", place=place)


def _dropped(handler: Handler) -> Iterator[str]:
    """Where a statement is `message.answer(…)` alone; `message` is the handler's first parameter."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(handler)))
    except (OSError, TypeError, SyntaxError):  # made without a file
        return
    names = [name for name in inspect.signature(handler).parameters if name != "self"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and names and _makes_a_call(node.value, names[0]):
            yield _place(handler, node.lineno - 1)


def _makes_a_call(node: ast.expr, event: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if not node.func.attr.startswith(SHORTCUTS):
        return False
    of: ast.expr = node.func.value
    while isinstance(of, ast.Attribute):
        of = of.value
    return isinstance(of, ast.Name) and of.id == event


def _watched(handler: Handler) -> Handler:
    told = False

    @wraps(handler)
    async def watched(*arguments: Any, **named: Any) -> Any:
        nonlocal told
        result = await handler(*arguments, **named)
        if _is_lost(result):
            metrics.mistakes.labels("returned").inc()
            if not told:
                told = True
                log.warning(
                    "a handler returns what cannot be sent: return a method, such as message.answer(text)",
                    place=_place(inspect.unwrap(handler)),
                    type=type(result).__qualname__,
                )
        return result

    return watched


def _is_lost(result: object) -> bool:
    if isinstance(result, list | tuple):
        return any(isinstance(part, TelegramMethod | str) for part in result)
    return isinstance(result, str | bytes) or inspect.iscoroutine(result)


def _place(handler: Handler, line: int = 0) -> str:
    code = getattr(handler, "__code__", None)
    if code is None:
        return getattr(handler, "__qualname__", "?")
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno + line}"
