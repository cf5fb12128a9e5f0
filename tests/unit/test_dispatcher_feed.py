"""What our way through aiogram's routers calls, beside what aiogram's own calls."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiogram import Bot, Dispatcher, F, Router
from aiogram.dispatcher.event.bases import UNHANDLED, SkipHandler
from aiogram.types import ErrorEvent, Message, Update

from pillarbox_dispatcher.feed import Feed
from tests.support.updates import callback, message

BOT = Bot("42:" + "a" * 35)

Feeding = Callable[[Bot, Update], Awaitable[Any]]


class Trace:
    """A tree of three routers that writes down what is called; its middlewares hand data on."""

    def __init__(self, *middlewares: str) -> None:
        self.called: list[str] = []
        self.dispatcher = Dispatcher()
        self.outer, self.inner, self.last = Router(name="outer"), Router(name="inner"), Router(name="last")
        self.dispatcher.include_routers(self.outer, self.last)
        self.outer.include_router(self.inner)
        self.inner.message.register(self._skips, F.text == "skip")
        self.inner.message.register(self._raises, F.text == "raise")
        self.inner.message.register(self._handles("inner"), F.text.regexp("inside").as_("found"))
        self.last.message.filter(F.text != "nobody")
        self.last.message.register(self._handles("last"))
        self.outer.errors.register(self._error)
        for name in middlewares:
            self.add(name)

    def add(self, name: str) -> None:
        """`inner.message.outer`: an outer middleware on messages of the router `inner`."""
        router, event, kind = name.split(".")
        observer = (self.dispatcher if router == "dispatcher" else getattr(self, router)).observers[event]
        (observer.outer_middleware if kind == "outer" else observer.middleware)(self._middleware(name))

    def _middleware(self, name: str) -> Any:
        async def run(handler: Any, event: Any, data: dict[str, Any]) -> Any:
            self.called.append(f"{name} {type(event).__name__} {sorted(data)}")
            return await handler(event, {**data, name: True})

        return run

    def _handles(self, name: str) -> Any:
        async def handle(message: Message, **data: Any) -> str:
            self.called.append(f"{name} {sorted(data)}")
            return name

        return handle

    async def _skips(self, message: Message) -> None:
        self.called.append("skips")
        raise SkipHandler

    async def _raises(self, message: Message) -> None:
        raise ValueError

    async def _error(self, event: ErrorEvent, **data: Any) -> str:
        self.called.append(f"error {sorted(data)}")
        return "error"


MIDDLEWARES = [
    (),
    ("outer.message.inner",),
    ("dispatcher.message.outer", "inner.message.outer", "inner.message.inner", "last.message.inner"),
    ("dispatcher.update.outer", "dispatcher.update.inner", "outer.error.inner", "dispatcher.error.outer"),
]
TEXTS = ("inside", "skip", "raise", "other", "nobody")


@pytest.mark.parametrize("middlewares", MIDDLEWARES, ids=len)
async def test_the_same_is_called_in_the_same_order(middlewares: tuple[str, ...]) -> None:
    bodies = [*(message(n, 5, text) for n, text in enumerate(TEXTS)), callback(9, 5, "x")]
    theirs, ours = Trace(*middlewares), Trace(*middlewares)
    answers = await fed(theirs.dispatcher.feed_update, bodies)
    assert answers[:4] == ["inner", "last", "error", "last"]
    assert answers[4:] == [UNHANDLED, UNHANDLED]
    assert await fed(Feed(ours.dispatcher), bodies) == answers
    assert ours.called == theirs.called


async def test_what_is_added_between_two_updates_takes_part() -> None:
    theirs, ours = Trace(), Trace()
    feed = Feed(ours.dispatcher)
    for name in (
        "inner.message.inner",
        "outer.message.inner",
        "outer.message.outer",
        "dispatcher.update.outer",
    ):
        for trace, feeding in ((theirs, theirs.dispatcher.feed_update), (ours, feed)):
            assert await fed(feeding, [message(1, 5, "inside")]) == ["inner"]
            trace.add(name)
    assert await fed(feed, [message(1, 5, "inside")]) == ["inner"]
    assert await fed(theirs.dispatcher.feed_update, [message(1, 5, "inside")]) == ["inner"]
    assert ours.called == theirs.called
    assert len(ours.called) == 15


async def test_a_router_that_comes_later_takes_part() -> None:
    trace = Trace()
    feed = Feed(trace.dispatcher)
    await fed(feed, [message(1, 5, "inside")])
    late = Router()
    late.callback_query.register(trace._handles("late"))
    trace.last.include_router(late)
    assert await fed(feed, [callback(9, 5, "x")]) == ["late"]


async def fed(feeding: Feeding, bodies: list[bytes]) -> list[Any]:
    return [await feeding(BOT, Update.model_validate_json(body, context={"bot": BOT})) for body in bodies]
