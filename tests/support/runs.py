"""A run of one update by handlers that a test writes."""

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiogram import Bot, Dispatcher, Router
from aiogram.fsm.storage.memory import MemoryStorage

from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox import End, Finished, Lease
from pillarbox_dispatcher import handlers
from pillarbox_dispatcher.runs import Runs
from tests.support.updates import message

BOT = Bot("42:" + "a" * 35)


Handler = Callable[..., Awaitable[Any]]


def dispatcher(router: Router) -> Dispatcher:
    module = type(sys)("bot")
    module.router = router  # type: ignore[attr-defined]
    return handlers.dispatcher(module, MemoryStorage())


def lease(body: bytes, kind: str = "message", age: float = 0.0) -> Lease:
    return Lease(
        token=Token(7),
        row=RowId(1),
        bot_id=BotId(42),
        lane="chat:5",
        update_id=UpdateId(1),
        kind=kind,
        body=body,
        run=1,
        accepted_at=datetime.now(UTC),
        age=age,
    )


async def end_of(
    router: Router, body: bytes = message(1, 5, "/start"), *, timeout: float = 5.0, **more: Any
) -> End:
    return await Runs(dispatcher(router), {BotId(42): BOT}, timeout=timeout).handle(lease(body, **more))


def of(handler: Handler) -> Router:
    router = Router()
    router.message.register(handler)
    return router


def texts(end: End) -> list[str]:
    assert isinstance(end, Finished)
    return [json.loads(element)["params"]["text"] for element in end.outbox]
