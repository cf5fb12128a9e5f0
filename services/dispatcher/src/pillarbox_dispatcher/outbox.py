"""What a handler sends together with its update's end."""

from typing import Any

from aiogram import Bot
from aiogram.methods import TelegramMethod

from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, decode, encode
from pillarbox_dispatcher import wire

MOST_MESSAGES = 10_000
MOST_BYTES = 16 << 20


class OutboxFull(ValueError):
    """One run queued more than a finish can write at once."""


class Outbox:
    """Calls that are kept with the update's end, in order; nothing of them leaves when the run fails."""

    def __init__(self, bot: Bot, max_message: int = 1 << 20) -> None:
        self._bot = bot
        self._max_message = max_message
        self._elements: list[bytes] = []
        self._bytes = 0

    def add(self, method: TelegramMethod[Any]) -> None:
        """Takes a method that was made and not awaited: `outbox.add(message.answer("hi"))`.

        MessageRefused: this method may not be queued. UploadRefused: it brings the bytes of a file.
        OutboxFull: the run has queued too much.
        """
        if not isinstance(method, TelegramMethod):
            raise TypeError(f"outbox.add takes message.answer(...) and the like, not {type(method).__name__}")
        bot = method.bot or self._bot
        envelope = Envelope(method.__api_method__, wire.params(method, bot), BotId(bot.id))
        element = encode(envelope)
        decode(element)
        if len(element) > self._max_message:
            raise ValueError(f"a message of {len(element)} bytes; MAX_MESSAGE allows {self._max_message}")
        if len(self._elements) >= MOST_MESSAGES or self._bytes + len(element) > MOST_BYTES:
            raise OutboxFull(
                f"one run may queue {MOST_MESSAGES} messages of {MOST_BYTES >> 20} MiB in all;"
                " push the rest from elsewhere (pillarbox.Client, or the door)"
            )
        self._elements.append(element)
        self._bytes += len(element)

    def clear(self) -> None:
        self._elements.clear()
        self._bytes = 0

    def elements(self) -> tuple[bytes, ...]:
        return tuple(self._elements)
