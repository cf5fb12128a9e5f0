"""aiogram's chains of middlewares, without what nobody sees of them.

For each update it looks for the middlewares of each router on the way, and wraps handlers that have none: a
tenth of all that it does. What is called, with what, and in which order stays as it is.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiogram import Dispatcher
from aiogram.dispatcher.event.telegram import TelegramEventObserver
from aiogram.dispatcher.middlewares.manager import MiddlewareManager

Next = Callable[[Any, dict[str, Any]], Awaitable[Any]]


def shorten(dispatcher: Dispatcher) -> None:
    """Of all routers that it has now; those that come later work as well, and take their time."""
    for router in dispatcher.chain_tail:
        for observer in router.observers.values():
            for manager in (observer.middleware, observer.outer_middleware):
                vars(manager)["wrap_middlewares"] = _wrapped
            vars(observer)["_resolve_middlewares"] = _resolved(observer)


def _wrapped(middlewares: Sequence[Any], handler: Callable[..., Awaitable[Any]]) -> Next:
    """Only a middleware could see that the handler's name and signature are not on its wrapper."""
    if len(middlewares):
        return MiddlewareManager.wrap_middlewares(middlewares, handler)
    return lambda event, data: handler(event, **data)


def _resolved(observer: TelegramEventObserver) -> Callable[[], list[Any]]:
    """A router in a dispatcher's tree gets no other parents, but at any time more middlewares."""
    on_the_way = [
        above.middleware
        for router in reversed(tuple(observer.router.chain_head))
        if (above := router.observers.get(observer.event_name))
    ]
    return lambda: [one for manager in on_the_way for one in manager[:]]
