"""The chats of one bot: who is in them, what was written, and which keyboard lies below."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pillarbox_simulator.changes import Changes

Message = dict[str, Any]
User = dict[str, Any]

HISTORY = 1_000
"""Messages kept in one chat, the newest."""


def user(user_id: int, name: str | None = None) -> User:
    return {"id": user_id, "is_bot": False, "first_name": name or f"User {user_id}", "language_code": "en"}


def chat_type(chat_id: int) -> str:
    if chat_id > 0:
        return "private"
    return "supergroup" if chat_id <= -1_000_000_000_000 else "group"


@dataclass(slots=True)
class Chat:
    bot_id: int
    id: int
    name: str
    changes: Changes
    messages: dict[int, Message] = field(default_factory=dict)
    next_id: int = 1
    keyboard: dict[str, Any] | None = None
    last_written: float = 0.0
    face: dict[str, Any] = field(init=False)
    """The chat as the Bot API's objects show it."""

    def __post_init__(self) -> None:
        kind = chat_type(self.id)
        self.face = {"id": self.id, ("first_name" if kind == "private" else "title"): self.name, "type": kind}

    def rename(self, name: str) -> None:
        self.name = name
        self.__post_init__()
        self.changes.publish("chat", self.bot_id, self.id, name, self.next_id)

    def add(self, sender: User, at: float, content: dict[str, Any]) -> Message:
        """A new message at the end of the chat."""
        message_id, self.next_id = self.next_id, self.next_id + 1
        message = {"message_id": message_id, "from": sender, "chat": self.face, "date": int(at), **content}
        self.put(message)
        return message

    def put(self, message: Message) -> None:
        """Adds the message, or puts it in the place of what it was before an edit."""
        self.messages[message["message_id"]] = message
        if len(self.messages) > HISTORY:
            del self.messages[next(iter(self.messages))]
        self.changes.publish("message", self.bot_id, self.id, message)

    def remove(self, message_id: int) -> bool:
        if self.messages.pop(message_id, None) is None:
            return False
        self.changes.publish("deleted", self.bot_id, self.id, message_id)
        return True

    def lay(self, keyboard: dict[str, Any] | None) -> None:
        if keyboard != self.keyboard:
            self.keyboard = keyboard
            self.changes.publish("keyboard", self.bot_id, self.id, keyboard)


@dataclass(slots=True)
class Chats:
    bot_id: int
    changes: Changes
    by_id: dict[int, Chat] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Chat]:
        return iter(self.by_id.values())

    def get(self, chat_id: int, name: str | None = None) -> Chat:
        """The chat; a new one when nobody spoke of it before."""
        chat = self.by_id.get(chat_id)
        if chat is None:
            label = name or (f"User {chat_id}" if chat_id > 0 else f"Group {-chat_id}")
            chat = self.by_id[chat_id] = Chat(self.bot_id, chat_id, label, self.changes)
            self.changes.publish("chat", self.bot_id, chat_id, label, 1)
        elif name and name != chat.name:
            chat.rename(name)
        return chat
