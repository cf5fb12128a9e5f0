"""What people do: they write to a bot and press its buttons, and the bot gets an update."""

import secrets
from typing import Any

from pillarbox_simulator.bots import Bot
from pillarbox_simulator.chats import Message, user
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.updates import kind_of

MOST_QUERIES = 10_000
GROUP_MEMBER = 1_000
"""Who writes in a group when nobody is named."""


class Unknown(Exception):
    """There is no such bot, chat or message; the text says which."""


class People:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def write(
        self, bot: Bot, chat_id: int, text: str, user_id: int | None = None, name: str | None = None
    ) -> tuple[int | None, Message]:
        """Answers the id of the update, None when the bot does not want messages, and the message."""
        at = self._clock.now()
        chat = bot.chats.get(chat_id, name if chat_id > 0 else None)
        chat.last_written = at
        writer = self._writer(chat_id, user_id, name or (chat.name if chat_id > 0 else None))
        message = chat.add(writer, at, {"text": text} | _commands(text))
        return self.happen(bot, {"message": message}), message

    def press(
        self, bot: Bot, chat_id: int, message_id: int, data: str, user_id: int | None = None
    ) -> tuple[int | None, str]:
        """Answers the ids of the update and of the callback query. Raises Unknown."""
        chat = bot.chats.by_id.get(chat_id)
        message = chat.messages.get(message_id) if chat is not None else None
        if chat is None or message is None:
            raise Unknown(f"chat {chat_id} has no message {message_id}")
        chat.last_written = self._clock.now()
        query_id = str(secrets.randbits(63))
        query = {
            "id": query_id,
            "from": self._writer(chat_id, user_id, chat.name if chat_id > 0 else None),
            "message": message,
            "chat_instance": str(abs(chat_id)),
            "data": data,
        }
        bot.queries[query_id] = chat_id
        if len(bot.queries) > MOST_QUERIES:
            del bot.queries[next(iter(bot.queries))]
        return self.happen(bot, {"callback_query": query}), query_id

    def happen(self, bot: Bot, update: dict[str, Any], update_id: int | None = None) -> int | None:
        """Any update at all; None when the bot does not want this kind, or its queue is full."""
        if not bot.registration.allows(kind_of(update)):
            return None
        return bot.updates.add(update, update_id)

    def _writer(self, chat_id: int, user_id: int | None, name: str | None) -> dict[str, Any]:
        return user(user_id or (chat_id if chat_id > 0 else GROUP_MEMBER), name)


def _commands(text: str) -> dict[str, Any]:
    if not text.startswith("/") or len(text) < 2:
        return {}
    return {"entities": [{"type": "bot_command", "offset": 0, "length": len(text.split(maxsplit=1)[0])}]}
