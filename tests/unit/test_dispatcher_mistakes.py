"""What handlers do wrong without an error is told, with its place, once."""

from typing import Any

import pytest
import structlog
from aiogram import Dispatcher, Router
from aiogram.filters import Command
from aiogram.types import CallbackQuery, Message

from pillarbox_dispatcher.mistakes import watch


async def dropped(message: Message) -> None:
    message.answer("hi")


async def dropped_twice(query: CallbackQuery) -> None:
    if query.data:
        query.answer()
    query.message.answer("hi")  # type: ignore[union-attr]


async def right(message: Message, outbox: Any) -> Any:
    await message.answer("hi")
    outbox.add(message.answer("hi"))
    kept = message.answer("hi")
    message.html_text  # noqa: B018
    return kept


async def text(message: Message) -> str:
    return "hi"


async def several(message: Message) -> Any:
    return [message.answer("a"), message.answer("b")]


async def nothing(message: Message) -> bool:
    return True


def watched(handler: Any) -> tuple[Any, list[Any]]:
    """The handler as it runs from now on, and what is told at the start."""
    router = Router()
    router.message.register(handler, Command("x"))
    dispatcher = Dispatcher()
    dispatcher.include_router(router)
    with structlog.testing.capture_logs() as lines:
        watch(dispatcher)
    return router.message.handlers[0], lines


def line_of(handler: Any, offset: int) -> str:
    return f"test_dispatcher_mistakes.py:{handler.__code__.co_firstlineno + offset}"


@pytest.mark.parametrize(
    ("handler", "offsets"), [(dropped, [1]), (dropped_twice, [2, 3]), (right, []), (text, []), (nothing, [])]
)
def test_a_call_that_is_made_and_dropped_is_told_at_the_start(handler: Any, offsets: list[int]) -> None:
    _, lines = watched(handler)
    assert sorted(line["place"] for line in lines) == [line_of(handler, offset) for offset in offsets]
    assert all("makes a call and drops it" in line["event"] for line in lines)


@pytest.mark.parametrize(("handler", "type"), [(text, "str"), (several, "list"), (nothing, None)])
async def test_a_result_that_cannot_be_sent_is_told_once(handler: Any, type: str | None) -> None:
    runs, _ = watched(handler)
    message = Message.model_validate({"message_id": 1, "date": 0, "chat": {"id": 1, "type": "private"}})
    with structlog.testing.capture_logs() as lines:
        for _ in range(2):
            assert await runs.call(message, handler=runs) == await handler(message)
    assert [line["type"] for line in lines] == ([type] if type else [])
    assert all(line["place"] == line_of(handler, 0) for line in lines)
    assert all("hi" not in str(line.values()) for line in lines)
