"""What a method looks like in the outbox."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiogram import Bot
from aiogram.client.default import DefaultBotProperties
from aiogram.enums import ChatAction, ParseMode
from aiogram.methods import (
    AnswerCallbackQuery,
    BanChatMember,
    EditMessageText,
    GetMe,
    SendChatAction,
    SendMediaGroup,
    SendMessage,
    SendPhoto,
    SetWebhook,
    TelegramMethod,
)
from aiogram.types import (
    BufferedInputFile,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    InputMediaVideo,
    LinkPreviewOptions,
)

from pillarbox.errors import MessageRefused
from pillarbox_dispatcher import Outbox
from pillarbox_dispatcher.outbox import MOST_BYTES, MOST_MESSAGES, OutboxFull
from pillarbox_dispatcher.wire import UploadRefused, params

BOT = Bot("42:" + "a" * 35, default=DefaultBotProperties(parse_mode=ParseMode.HTML))
PLAIN = Bot("43:" + "a" * 35)
KEYBOARD = InlineKeyboardMarkup(
    inline_keyboard=[
        [InlineKeyboardButton(text="Yes", callback_data="y"), InlineKeyboardButton(text="?", url="tg://x")]
    ]
)
SHOWN = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}, {"text": "?", "url": "tg://x"}]]}
UNTIL = datetime(2030, 1, 1, tzinfo=UTC)

CASES: list[tuple[TelegramMethod[Any], dict[str, Any]]] = [
    (
        SendMessage(chat_id=7, text="hi", reply_markup=KEYBOARD, disable_notification=False),
        {
            "chat_id": 7,
            "text": "hi",
            "parse_mode": "HTML",
            "reply_markup": SHOWN,
            "disable_notification": False,
        },
    ),
    (SendMessage(chat_id="@x", text="hi", parse_mode=None), {"chat_id": "@x", "text": "hi"}),
    (
        SendMessage(chat_id=7, text="hi", reply_markup=ForceReply()),
        {"chat_id": 7, "text": "hi", "parse_mode": "HTML", "reply_markup": {"force_reply": True}},
    ),
    (
        SendMessage(chat_id=7, text="hi", link_preview_options=LinkPreviewOptions(is_disabled=True)),
        {"chat_id": 7, "text": "hi", "parse_mode": "HTML", "link_preview_options": {"is_disabled": True}},
    ),
    (
        EditMessageText(chat_id=7, message_id=3, text="new"),
        {"chat_id": 7, "message_id": 3, "text": "new", "parse_mode": "HTML"},
    ),
    (
        AnswerCallbackQuery(callback_query_id="99", show_alert=True, cache_time=0),
        {"callback_query_id": "99", "show_alert": True, "cache_time": 0},
    ),
    (SendPhoto(chat_id=7, photo="file-id"), {"chat_id": 7, "photo": "file-id", "parse_mode": "HTML"}),
    (
        SendMediaGroup(
            chat_id=7, media=[InputMediaPhoto(media="a"), InputMediaVideo(media="b", caption="c")]
        ),
        {
            "chat_id": 7,
            "media": [
                {"type": "photo", "media": "a", "parse_mode": "HTML"},
                {"type": "video", "media": "b", "caption": "c", "parse_mode": "HTML"},
            ],
        },
    ),
    (SendChatAction(chat_id=7, action=ChatAction.TYPING), {"chat_id": 7, "action": "typing"}),
    (
        BanChatMember(chat_id=7, user_id=8, until_date=UNTIL),
        {"chat_id": 7, "user_id": 8, "until_date": round(UNTIL.timestamp())},
    ),
]


@pytest.mark.parametrize(("method", "expected"), CASES, ids=lambda case: type(case).__name__)
def test_wire_form(method: TelegramMethod[Any], expected: dict[str, Any]) -> None:
    assert params(method, BOT) == expected


def test_a_timedelta_counts_from_now() -> None:
    made = params(BanChatMember(chat_id=7, user_id=8, until_date=timedelta(hours=1)), BOT)
    assert made["until_date"] == pytest.approx(datetime.now(UTC).timestamp() + 3600, abs=5)


def test_elements_are_the_doors_and_name_their_bot() -> None:
    outbox = Outbox(BOT)
    outbox.add(SendMessage(chat_id=7, text="ä\u0000 \U0001f600"))
    outbox.add(SendMessage(chat_id=7, text="second").as_(PLAIN))
    first, second = (json.loads(element) for element in outbox.elements())
    assert first == {
        "method": "sendMessage",
        "params": {"chat_id": 7, "text": "ä\u0000 \U0001f600", "parse_mode": "HTML"},
        "bot": 42,
    }
    assert second == {"method": "sendMessage", "params": {"chat_id": 7, "text": "second"}, "bot": 43}


UPLOAD = BufferedInputFile(b"bytes", "x.png")
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (SendPhoto(chat_id=7, photo=UPLOAD), UploadRefused, "await the method"),
    (
        SendMediaGroup(chat_id=7, media=[InputMediaPhoto(media=UPLOAD)]),
        UploadRefused,
        "URL",
    ),
    (SetWebhook(url="https://example.org"), MessageRefused, "may not be queued"),
    (GetMe(), MessageRefused, "may not be queued"),
    (SendMessage(chat_id=7, text="x" * 5000), ValueError, "MAX_MESSAGE"),
    ("hello", TypeError, "outbox.add takes"),
    (None, TypeError, "outbox.add takes"),
]


@pytest.mark.parametrize(("given", "error", "text"), REFUSED, ids=lambda case: type(case).__name__)
def test_what_the_outbox_does_not_take(given: Any, error: type[Exception], text: str) -> None:
    outbox = Outbox(BOT, max_message=4096)
    with pytest.raises(error, match=text):
        outbox.add(given)
    assert outbox.elements() == ()


def test_one_run_queues_no_more_than_its_finish_can_write() -> None:
    many, large = Outbox(BOT), Outbox(BOT)
    small, big = SendMessage(chat_id=7, text="x"), SendMessage(chat_id=7, text="x" * 900_000)
    for _ in range(MOST_MESSAGES):
        many.add(small)
    with pytest.raises(OutboxFull, match="10000 messages of 16 MiB"):
        many.add(small)
    for _ in range(MOST_BYTES // 900_100):
        large.add(big)
    with pytest.raises(OutboxFull):
        large.add(big)
    large.clear()
    large.add(big)
