"""ANSWERS=outbox: what is queued, what goes to Telegram at once, and what a handler gets for it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from aiogram import Bot, Router
from aiogram.client.session.base import BaseSession
from aiogram.methods import GetMe, SendChatAction, TelegramMethod
from aiogram.types import BufferedInputFile, CallbackQuery, InputMediaPhoto, Message, User

from pillarbox.ids import BotId
from pillarbox.inbox import End, Failed, Finished
from pillarbox_dispatcher import AnswerIsQueued, Outbox, Queued, direct
from pillarbox_dispatcher.answers import QueuedAnswers
from pillarbox_dispatcher.runs import Runs
from tests.support.runs import dispatcher, lease
from tests.support.updates import callback, message

ME = User(id=42, is_bot=True, first_name="B")
SENT = Message.model_validate({"message_id": 99, "date": 1, "chat": {"id": 5, "type": "private"}})


class Telegram(BaseSession):
    """Notes what would leave now."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.middleware(QueuedAnswers())

    async def make_request(self, bot: Bot, method: TelegramMethod[Any], timeout: int | None = None) -> Any:
        self.calls.append(method.__api_method__)
        return ME if isinstance(method, GetMe) else SENT

    async def close(self) -> None: ...

    async def stream_content(self, *args: Any, **more: Any) -> AsyncGenerator[bytes, None]:
        yield b""


async def ran(handler: Callable[..., Awaitable[Any]], body: bytes | None = None) -> tuple[End, list[str]]:
    telegram, router = Telegram(), Router()
    kind = "callback_query" if body else "message"
    router.observers[kind].register(handler)
    bot = Bot("42:" + "a" * 35, session=telegram)
    runs = Runs(dispatcher(router), {BotId(42): bot}, timeout=5)
    return await runs.handle(lease(body or message(1, 5, "/start"), kind)), telegram.calls


def methods(end: End) -> list[str]:
    assert isinstance(end, Finished)
    return [json.loads(element)["method"] for element in end.outbox]


async def test_what_is_awaited_waits_in_the_outbox_in_order() -> None:
    async def answer(message: Message, outbox: Outbox) -> TelegramMethod[Any]:
        assert isinstance(await message.answer("one"), Queued)
        outbox.add(message.answer("two"))
        assert await message.delete() is True
        assert await message.bot.edit_message_text("x", chat_id=5, message_id=1)  # type: ignore[union-attr]
        return message.answer("three")

    end, calls = await ran(answer)
    assert methods(end) == ["sendMessage", "sendMessage", "deleteMessage", "editMessageText", "sendMessage"]
    assert calls == []


async def test_a_callback_is_answered_through_the_outbox() -> None:
    async def pressed(query: CallbackQuery) -> None:
        assert await query.answer("ok") is True

    end, calls = await ran(pressed, callback(9, 5, "x"))
    assert (methods(end), calls) == (["answerCallbackQuery"], [])


async def test_reads_and_what_may_not_be_queued_go_to_telegram() -> None:
    async def answer(message: Message, bot: Bot) -> None:
        assert (await bot.get_me()).id == 42
        await bot.create_chat_invite_link(5)
        await bot.set_webhook("https://example.org")
        await bot(SendChatAction(chat_id=5, action="typing"))

    end, calls = await ran(answer)
    assert methods(end) == []
    assert calls == ["getMe", "createChatInviteLink", "setWebhook", "sendChatAction"]


async def test_direct_calls_are_direct_inside_their_block_alone() -> None:
    async def answer(message: Message) -> None:
        with direct():
            assert (await message.answer("now")).message_id == 99
        await message.answer("later")

    end, calls = await ran(answer)
    assert (methods(end), calls) == (["sendMessage"], ["sendMessage"])


@pytest.mark.parametrize(
    "more",
    [
        lambda sent: sent.message_id,
        lambda sent: sent.chat.id,
        lambda sent: list(sent),
        lambda sent: sent[0],
        lambda sent: len(sent),
    ],
    ids=["attribute", "attribute of attribute", "list", "item", "length"],
)
async def test_a_stand_in_says_what_to_do_when_more_is_asked_of_it(more: Callable[[Any], Any]) -> None:
    async def answer(message: Message) -> None:
        more(await message.answer("one"))

    end, calls = await ran(answer)
    assert isinstance(end, Failed)
    assert end.error.startswith("AnswerIsQueued: sendMessage waits in the outbox")
    assert "with direct():" in end.error
    assert calls == []


def test_a_stand_in_shows_what_it_is() -> None:
    sent = Queued("sendMessage")
    assert repr(sent) == "<sendMessage, waits in the outbox>"
    assert sent
    assert not hasattr(sent, "message_id")
    with pytest.raises(AnswerIsQueued):
        _ = sent.text


async def test_an_upload_fails_and_says_what_to_do() -> None:
    async def photo(message: Message) -> None:
        await message.answer_photo(BufferedInputFile(b"bytes", "x.png"))

    async def album(message: Message) -> None:
        await message.answer_media_group([InputMediaPhoto(media=BufferedInputFile(b"bytes", "x.png"))])

    for handler in (photo, album):
        end, calls = await ran(handler)
        assert isinstance(end, Failed)
        assert end.error.startswith("UploadRefused: the outbox takes files by file_id or URL")
        assert "with direct():" in end.error
        assert calls == []


async def test_outside_of_a_run_calls_are_direct() -> None:
    telegram = Telegram()
    bot = Bot("42:" + "a" * 35, session=telegram)
    assert (await bot.send_message(5, "hi")).message_id == 99
    assert telegram.calls == ["sendMessage"]


async def test_a_task_that_a_handler_leaves_behind_is_outside_of_its_run() -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def later(message: Message) -> Message:
        await asyncio.sleep(0.02)
        return await message.answer("late")

    async def answer(message: Message) -> None:
        tasks.append(asyncio.create_task(later(message)))

    end, calls = await ran(answer)
    assert (methods(end), calls) == ([], [])
    assert (await tasks[0]).message_id == 99
    assert calls == ["sendMessage"]
