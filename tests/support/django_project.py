"""A project that uses django-aiogram: `python -m tests.support.django_project push|consume`.

`push` is any of its processes that sends; `consume` is its worker, whose Bot API is at TELEGRAM_API_BASE.
"""

import asyncio
import os
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import django
from django.conf import settings as project

TOKENS = os.environ["BOT_TOKENS"].split(",")
PICKLE = os.environ["SERIALIZER"] == "pickle"
PHOTO = bytes(range(256)) * 400


def set_up() -> None:
    project.configure(
        INSTALLED_APPS=["django_aiogram"],
        DATABASES={},
        USE_TZ=True,
        TELEGRAM_BOT_DEFAULTS={
            "REDIS_URL": os.environ["REDIS_URL"],
            "REDIS_MESSAGES_KEY": os.environ["QUEUE_KEY"],
            "DEFAULT_BOT_PROPERTIES": {"parse_mode": "HTML", "link_preview_is_disabled": True},
            "RATE_LIMIT": None,
            "FSM_STORAGE": "memory",
            "SERIALIZER": os.environ["SERIALIZER"],
            "ALLOW_PICKLE": PICKLE,
        },
        TELEGRAM_BOTS={
            "default": {"TOKEN": TOKENS[0]},
            "second": {"TOKEN": TOKENS[1], "DEFAULT_BOT_PROPERTIES": {"protect_content": True}},
        },
    )
    django.setup()


def push() -> None:
    """Each call in a chat of its own, so that it is known again at the Bot API."""
    from aiogram.enums import ParseMode
    from aiogram.methods import SendMessage
    from aiogram.types import (
        BotCommand,
        BufferedInputFile,
        ForceReply,
        InlineKeyboardButton,
        InlineKeyboardMarkup,
        InputMediaPhoto,
        InputMediaVideo,
        InputPollOption,
        KeyboardButton,
        LinkPreviewOptions,
        MessageEntity,
        ReplyKeyboardMarkup,
        ReplyKeyboardRemove,
        ReplyParameters,
    )
    from django_aiogram import bot, bots

    inline = InlineKeyboardMarkup(
        inline_keyboard=[
            [InlineKeyboardButton(text="Open", url="https://example.com/a?b=c&d=é")],
            [
                InlineKeyboardButton(text="Да", callback_data="yes"),
                InlineKeyboardButton(text="No", callback_data="no"),
            ],
        ]
    )
    below = ReplyKeyboardMarkup(
        keyboard=[[KeyboardButton(text="Phone", request_contact=True), KeyboardButton(text="x")]],
        resize_keyboard=True,
    )
    soon = datetime.now(UTC) + timedelta(minutes=5)
    # 1: text, plain and with what is not given
    bot.send(chat_id=1, text="hi <b>there</b> 🐈 “quotes” \\ and\nlines")
    bot.send(
        "send_message", chat_id=2, text="none of the defaults", parse_mode=None, disable_notification=False
    )
    bot.send("send_message", chat_id="@channel3", text="*enum*", parse_mode=ParseMode.MARKDOWN_V2)
    # 2: keyboards as objects and as plain dicts
    bot.send("send_message", chat_id=4, text="inline", reply_markup=inline)
    bot.send("send_message", chat_id=5, text="below", reply_markup=below)
    bot.send(
        "send_message",
        chat_id=6,
        text="plain",
        reply_markup={"inline_keyboard": [[{"text": "a", "callback_data": "b"}]]},
    )
    bot.send("send_message", chat_id=7, text="gone", reply_markup=ReplyKeyboardRemove(remove_keyboard=True))
    bot.send(
        "send_message",
        chat_id=8,
        text="force",
        reply_markup=ForceReply(force_reply=True, input_field_placeholder="?"),
    )
    # 3: a photo from bytes, by id, by URL
    bot.send(
        "send_photo",
        chat_id=9,
        photo=BufferedInputFile(PHOTO, "кот 1.png"),
        caption="<i>bytes</i>",
        reply_markup=inline,
    )
    bot.send(
        "send_photo", chat_id=10, photo="AgACAgIAAxkBAAI", caption="by id", show_caption_above_media=True
    )
    bot.send("send_document", chat_id=11, document="https://example.com/a.pdf")
    # 4: an album, of bytes and ids
    album = [
        InputMediaPhoto(media=BufferedInputFile(b"one" * 100, "1.jpg"), caption="<b>first</b>"),
        InputMediaVideo(media="BAACAgIAAxkBAAI", supports_streaming=True, duration=5),
        InputMediaPhoto(
            media="https://example.com/3.jpg", caption="_third_", parse_mode="Markdown", has_spoiler=True
        ),
    ]
    bot.send("send_media_group", chat_id=12, media=album)
    # 5: dates: with a zone, without one, and whole days
    options = [InputPollOption(text="<i>yes</i>"), "no"]
    bot.send("send_poll", chat_id=13, question="?", options=options, close_date=soon, is_anonymous=False)
    east = soon.astimezone(timezone(timedelta(hours=3), "east"))
    bot.send("ban_chat_member", chat_id=-100014, user_id=5, until_date=east)
    bot.send("ban_chat_member", chat_id=-100015, user_id=5, until_date=datetime(2031, 5, 6, 7, 8, 9))  # noqa: DTZ001
    bot.send("ban_chat_member", chat_id=-100016, user_id=5, until_date=date(2031, 5, 6))
    bot.send("ban_chat_member", chat_id=-100017, user_id=5, until_date=1_900_000_000)
    # 6: an aiogram method, with nested objects
    bot.send(
        SendMessage(
            chat_id=18,
            text="typed",
            entities=[MessageEntity(type="bold", offset=0, length=2)],
            link_preview_options=LinkPreviewOptions(url="https://example.com", prefer_large_media=True),
            reply_parameters=ReplyParameters(message_id=1, allow_sending_without_reply=True, quote="q"),
            message_thread_id=0,
        )
    )
    # 7: numbers
    bot.send("send_location", chat_id=19, latitude=51.5, longitude=Decimal("-0.125"), live_period=60)
    bot.send(
        "send_invoice",
        chat_id=20,
        title="t",
        description="d",
        payload="p",
        currency="XTR",
        prices=[{"label": "a", "amount": 5}],
    )
    # 8: without a chat
    bot.send("set_my_commands", commands=[BotCommand(command="start", description="Begin")])
    bot.send("answer_callback_query", callback_query_id="77", text="<b>ok</b>", show_alert=True)
    # 9: another bot, with defaults of its own
    bots["second"].send(chat_id=23, text="from <b>another</b>")
    bots["second"].send(
        "send_photo", chat_id=24, photo=BufferedInputFile(b"second", "s.png"), protect_content=False
    )
    # 10: many at once, and awaited
    bot.send_many([25, 26, 27], text="<i>many</i>")
    asyncio.run(bot.asend("send_dice", chat_id=28, emoji="🎲"))


def consume() -> None:
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from django.core.management import call_command
    from django_aiogram.runtime import process

    server = TelegramAPIServer.from_base(os.environ["TELEGRAM_API_BASE"])
    # A session for each bot, as each has a loop of its own: with the one of 5.2.0 only the first bot sends.
    process.session = lambda: AiohttpSession(api=server)
    call_command("start_tgbot", no_updates=True)


if __name__ == "__main__":
    set_up()
    {"push": push, "consume": consume}[sys.argv[1]]()
