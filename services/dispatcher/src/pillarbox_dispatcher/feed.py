from typing import Any

from aiogram import Bot, Dispatcher
from aiogram.types import Update

from pillarbox_dispatcher.chains import shorten


class Feed:
    """`Dispatcher.feed_update` for an update that was parsed for its bot.

    aiogram builds the chain of outer middlewares anew for each update, an eighth of all that it does. Here it
    is built once, and again when a middleware was added.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._middlewares: list[Any] | None = None

    async def __call__(self, bot: Bot, update: Update, **data: Any) -> Any:
        observer = self._dispatcher.update
        if self._middlewares != observer.outer_middleware[:]:
            self._middlewares = list(observer.outer_middleware)
            shorten(self._dispatcher)
            self._chain = observer.middleware.wrap_middlewares(observer.outer_middleware, observer.trigger)
        given = {"dispatcher": self._dispatcher, **self._dispatcher.workflow_data, **data, "bot": bot}
        return await self._chain(update, given)
