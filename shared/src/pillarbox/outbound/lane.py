"""The lane that an outbound message waits in: bot, class and chat. One call of a lane is out at a time."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope

Class = Literal["answer", "interactive", "paid", "bulk"]
"""Paid is bulk that pays for more than its share (`allow_paid_broadcast`)."""

ANSWERS = frozenset(
    {"answercallbackquery", "answerinlinequery", "answerprecheckoutquery", "answershippingquery"}
)
QUERIES = ("callback_query_id", "inline_query_id", "pre_checkout_query_id", "shipping_query_id")
NUMBER = re.compile(r"-?[0-9]{1,18}")
USERNAME = re.compile(r"@[A-Za-z0-9_]{1,64}")
SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Lane:
    """`str(lane)` is its name in Redis: `123456:interactive:42`."""

    bot: BotId
    kind: Class
    chat: str

    def __str__(self) -> str:
        return f"{self.bot}:{self.kind}:{self.chat}"

    @classmethod
    def parse(cls, name: str) -> "Lane":
        bot, kind, chat = name.split(":", 2)
        return cls(BotId(int(bot)), kind, chat)  # type: ignore[arg-type]


def class_of(envelope: Envelope, bulk: bool) -> Class:
    if envelope.method.lower() in ANSWERS:
        return "answer"
    if not bulk:
        return "interactive"
    return "paid" if envelope.params.get("allow_paid_broadcast") is True else "bulk"


def chat_of(envelope: Envelope) -> str:
    """The chat; or what a call without one keeps its order by: inline message, query, user, method."""
    params = envelope.params
    if params.get("chat_id") is not None:
        return _chat(params["chat_id"])
    if params.get("inline_message_id") is not None:
        return f"inline:{_safe(params['inline_message_id'])}"
    for name in QUERIES:
        if params.get(name) is not None:
            return f"query:{_safe(params[name])}"
    if params.get("user_id") is not None:
        return f"user:{_safe(params['user_id'])}"
    return f"method:{envelope.method.lower()}"


def _chat(chat_id: Any) -> str:
    """42, 42.0 and "42" are one chat, as they are for Telegram; what is no chat is in lane `?`."""
    if isinstance(chat_id, float) and chat_id.is_integer():
        chat_id = int(chat_id)
    text = "" if isinstance(chat_id, bool) else str(chat_id) if isinstance(chat_id, (int, str)) else ""
    if NUMBER.fullmatch(text):
        return str(int(text))
    return text.lower() if USERNAME.fullmatch(text) else "?"


def _safe(value: Any) -> str:
    text = str(value)
    if SAFE.fullmatch(text):
        return text
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
