"""Which lane a message waits in."""

from typing import Any

import pytest

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope
from pillarbox.outbound.lane import Lane, chat_of, class_of


@pytest.mark.parametrize(
    ("method", "params", "chat"),
    [
        ("sendMessage", {"chat_id": 42}, "42"),
        ("sendMessage", {"chat_id": "42"}, "42"),
        ("sendMessage", {"chat_id": 42.0}, "42"),
        ("sendMessage", {"chat_id": -1001234567890}, "-1001234567890"),
        ("sendMessage", {"chat_id": "@Channel_One"}, "@channel_one"),
        ("sendMessage", {"chat_id": True}, "?"),
        ("sendMessage", {"chat_id": {"a": 1}}, "?"),
        ("sendMessage", {"chat_id": "two\nlines"}, "?"),
        ("sendMessage", {"chat_id": 1.5}, "?"),
        ("sendMessage", {"chat_id": 10**30}, "?"),
        ("sendMessage", {"chat_id": None}, "method:sendmessage"),
        ("editMessageText", {"inline_message_id": "AbC-1"}, "inline:AbC-1"),
        ("answerCallbackQuery", {"callback_query_id": "77"}, "query:77"),
        ("answerInlineQuery", {"inline_query_id": 78}, "query:78"),
        ("setUserEmojiStatus", {"user_id": 5}, "user:5"),
        ("setMyCommands", {}, "method:setmycommands"),
    ],
)
def test_the_chat_of_a_call(method: str, params: dict[str, Any], chat: str) -> None:
    assert chat_of(Envelope(method, params)) == chat


def test_an_id_that_is_no_word_still_makes_one_lane() -> None:
    odd = [
        chat_of(Envelope("answerCallbackQuery", {"callback_query_id": "a\n:b" + end}))
        for end in ("", "", "c")
    ]
    assert odd[0] == odd[1] != odd[2]
    assert "\n" not in odd[0]


@pytest.mark.parametrize(
    ("method", "bulk", "kind"),
    [
        ("sendMessage", False, "interactive"),
        ("sendMessage", True, "bulk"),
        ("AnswerCallbackQuery", False, "answer"),
        ("answerPreCheckoutQuery", True, "answer"),
        ("answerShippingQuery", False, "answer"),
        ("answerInlineQuery", False, "answer"),
        ("answerWebAppQuery", False, "interactive"),
    ],
)
def test_the_class_of_a_call(method: str, bulk: bool, kind: str) -> None:
    assert class_of(Envelope(method, {}), bulk) == kind


@pytest.mark.parametrize("chat", ["42", "-100", "@name", "query:a:b", "method:sendmessage"])
def test_a_lane_s_name_is_read_again(chat: str) -> None:
    lane = Lane(BotId(7), "interactive", chat)
    assert Lane.parse(str(lane)) == lane
