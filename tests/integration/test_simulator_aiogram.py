"""aiogram's own client must not see a difference."""

from collections.abc import AsyncIterator

import pytest
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramForbiddenError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    KeyboardButton,
    ReplyKeyboardMarkup,
)

from pillarbox_simulator import Running
from tests.support.simulator import BOT_ID, TOKEN
from tests.support.simulator_client import SimulatorClient


@pytest.fixture
async def bot(simulator: Running) -> AsyncIterator[Bot]:
    session = AiohttpSession(api=TelegramAPIServer.from_base(simulator.url))
    async with Bot(TOKEN, session=session) as bot:
        yield bot


async def test_a_bot_talks(bot: Bot, control: SimulatorClient) -> None:
    assert (await bot.get_me()).id == BOT_ID
    keyboard = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="b", callback_data="d")]])
    sent = await bot.send_message(42, "<b>hi</b> & all", parse_mode="HTML", reply_markup=keyboard)
    assert sent.text == "hi & all"
    assert sent.reply_markup is not None
    assert sent.reply_markup.inline_keyboard[0][0].callback_data == "d"
    assert sent.entities is not None
    assert sent.entities[0].type == "bold"
    edited = await bot.edit_message_text("new", chat_id=42, message_id=sent.message_id)
    assert getattr(edited, "text", None) == "new"
    reply = ReplyKeyboardMarkup(keyboard=[[KeyboardButton(text="yes")]])
    await bot.send_message(42, "?", reply_markup=reply, reply_parameters=None)
    assert await bot.send_chat_action(42, "typing")
    assert await bot.delete_message(42, sent.message_id)
    assert await bot.set_my_commands([BotCommand(command="go", description="Goes")])
    assert [command.command for command in await bot.get_my_commands()] == ["go"]
    assert (await bot.get_chat(42)).id == 42
    assert (await bot.send_dice(42)).dice is not None
    assert (await bot.send_location(42, 1.5, 2.5)).location is not None
    assert [entry["status"] for entry in await control.ledger()] == [200] * 11


async def test_files_go_up_and_down(bot: Bot) -> None:
    message = await bot.send_photo(42, BufferedInputFile(b"png", "a.png"), caption="see")
    assert message.photo
    assert message.caption == "see"
    file = await bot.download(message.photo[0].file_id)
    assert file is not None
    assert file.read() == b"png"
    album = await bot.send_media_group(
        42, [InputMediaPhoto(media=BufferedInputFile(b"1", "1.png")), InputMediaPhoto(media="known-id")]
    )
    assert len(album) == 2


async def test_updates_arrive(bot: Bot, control: SimulatorClient) -> None:
    await control.say([{"bot_id": BOT_ID, "chat_id": 42, "text": "/start"}])
    (update,) = await bot.get_updates(timeout=5, allowed_updates=["message"])
    assert update.message is not None
    assert update.message.text == "/start"
    assert await bot.get_updates(offset=update.update_id + 1, timeout=0) == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"kind": "429", "retry_after": 2}, TelegramRetryAfter),
        ({"kind": "400"}, TelegramBadRequest),
        ({"kind": "401"}, TelegramUnauthorizedError),
        ({"kind": "403"}, TelegramForbiddenError),
        ({"kind": "500"}, TelegramServerError),
        ({"kind": "reset_before"}, TelegramNetworkError),
        ({"kind": "reset_after"}, TelegramNetworkError),
    ],
)
async def test_faults_look_like_telegrams(
    bot: Bot, control: SimulatorClient, fault: dict[str, object], error: type[Exception]
) -> None:
    await control.faults([fault])
    with pytest.raises(error):
        await bot.send_message(42, "x")
