"""One call on its way through a method."""

from dataclasses import dataclass
from typing import Any

from pillarbox_simulator.answers import bad_request
from pillarbox_simulator.bots import Bot
from pillarbox_simulator.chats import Chat
from pillarbox_simulator.params import NUMBER, Params, Uploads


@dataclass(slots=True)
class Call:
    bot: Bot
    method: str
    params: Params
    uploads: Uploads
    at: float

    def chat(self, name: str = "chat_id") -> Chat:
        """The chat that the call is about; a chat that is new to the simulator is made."""
        return self.bot.chats.get(self._chat_id(name))

    def _chat_id(self, name: str) -> int:
        chat_id = self.params.get(name)
        if type(chat_id) is int and chat_id != 0:
            return chat_id
        if isinstance(chat_id, str) and NUMBER.match(chat_id) and int(chat_id):
            return int(chat_id)
        raise bad_request("chat not found" if chat_id else f"{name} is empty")

    def number(self, name: str) -> int:
        value = self.params.get(name)
        if isinstance(value, str) and NUMBER.match(value):
            return int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise bad_request(f"{name} must be a number")
        return value

    def listed(self, name: str) -> list[Any]:
        value = self.params.get(name)
        if not isinstance(value, list):
            raise bad_request(f"can't parse {name} JSON array")
        return value
