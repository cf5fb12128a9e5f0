"""ANSWERS=outbox: what a handler awaits waits in the outbox, and what it gets is a stand-in."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from aiogram import Bot
from aiogram.client.session.middlewares.base import BaseRequestMiddleware, NextRequestMiddlewareType
from aiogram.methods import Response, TelegramMethod
from aiogram.methods.base import TelegramType
from aiogram.types import Message, MessageId

from pillarbox.outbound.methods import NOT_QUEUED
from pillarbox_dispatcher.current import current
from pillarbox_dispatcher.wire import UploadRefused

FIX = "make the call inside `with direct():` (from pillarbox_dispatcher), or set ANSWERS=direct"
KEPT: tuple[Any, ...] = (Message, MessageId, Message | bool, list[Message], list[MessageId])
"""What a call answers whose effect is the point of it. Others are asked for their answer."""
DIRECT = NOT_QUEUED | {"sendchataction"}
"""A chat action is over before a queue has sent it."""

_direct: ContextVar[bool] = ContextVar("pillarbox_direct", default=False)


class AnswerIsQueued(AttributeError, TypeError):
    """More was asked of a stand-in than its fact; the text says what to do."""

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} waits in the outbox, Telegram has not answered it yet; {FIX}")


class Queued:
    """Stands for the answer of a call that waits in the outbox."""

    def __init__(self, method: str) -> None:
        self.__method = method

    def __repr__(self) -> str:
        return f"<{self.__method}, waits in the outbox>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AnswerIsQueued(self.__method)

    def __iter__(self) -> NoReturn:
        raise AnswerIsQueued(self.__method)

    def __len__(self) -> NoReturn:
        raise AnswerIsQueued(self.__method)

    def __getitem__(self, key: object) -> NoReturn:
        raise AnswerIsQueued(self.__method)

    def __bool__(self) -> bool:
        return True


@contextmanager
def direct() -> Iterator[None]:
    """Calls in the block go to Telegram at once, whatever ANSWERS is, and give the real answer."""
    token = _direct.set(True)
    try:
        yield
    finally:
        _direct.reset(token)


class QueuedAnswers(BaseRequestMiddleware):
    """Of a bot's session. Reads, what may not be queued, and all outside of a run go on to Telegram."""

    async def __call__(
        self,
        make_request: NextRequestMiddlewareType[TelegramType],
        bot: Bot,
        method: TelegramMethod[TelegramType],
    ) -> Response[TelegramType]:
        run = current()
        if run is None or _direct.get() or not is_queued(method):
            return await make_request(bot, method)
        try:
            run.outbox.add(method.as_(bot))
        except UploadRefused:
            raise UploadRefused(FIX) from None
        answer: Any = True if method.__returning__ is bool else Queued(method.__api_method__)
        return answer  # type: ignore[no-any-return]  # aiogram passes the result itself up here


def is_queued(method: TelegramMethod[Any]) -> bool:
    name = method.__api_method__.lower()
    if name in DIRECT or name.startswith("get"):
        return False
    return method.__returning__ is bool or method.__returning__ in KEPT
