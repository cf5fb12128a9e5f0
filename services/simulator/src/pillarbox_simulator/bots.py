"""The bots, by token and by id."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pillarbox.settings import TOKEN
from pillarbox_simulator.answers import Refused
from pillarbox_simulator.changes import Changes
from pillarbox_simulator.chats import Chats
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.params import Upload
from pillarbox_simulator.updates import NOT_BY_DEFAULT, UpdateQueue


@dataclass(slots=True)
class Registration:
    """What setWebhook was told; without a `url` the bot asks with getUpdates."""

    url: str = ""
    secret_token: str = field(default="", repr=False)
    max_connections: int = 40
    allowed_updates: list[str] = field(default_factory=list)

    def allows(self, kind: str) -> bool:
        if not self.allowed_updates:
            return kind not in NOT_BY_DEFAULT
        return kind in self.allowed_updates


@dataclass(slots=True)
class Troubles:
    """What getWebhookInfo tells of the last delivery that failed."""

    date: int | None = None
    message: str = ""


@dataclass(slots=True)
class Bot:
    id: int
    user: dict[str, Any]
    updates: UpdateQueue
    chats: Chats
    registration: Registration = field(default_factory=Registration)
    troubles: Troubles = field(default_factory=Troubles)
    files: dict[str, Upload] = field(default_factory=dict)
    queries: dict[str, int] = field(default_factory=dict)
    """Callback queries that wait for an answer, and the chat of each."""
    commands: list[dict[str, Any]] = field(default_factory=list)


class Bots:
    """Given tokens are the bots that exist. Without any, every well-formed token is one."""

    def __init__(self, tokens: list[str], clock: Clock, changes: Changes) -> None:
        self.open = not tokens
        self._clock = clock
        self._changes = changes
        self._by_id: dict[int, Bot] = {}
        self._by_token: dict[str, Bot] = {}
        self._tokens = frozenset(tokens)

    def __iter__(self) -> Iterator[Bot]:
        return iter(self._by_id.values())

    def create_given(self) -> None:
        """After the journal was read: the bots of the given tokens exist from the start."""
        for token in self._tokens:
            self.by_token(token)

    def by_token(self, token: str) -> Bot:
        """Raises Refused 401 for a token that is no bot's."""
        bot = self._by_token.get(token)
        if bot is not None:
            return bot
        match = TOKEN.match(token)
        if match is None or not (self.open or token in self._tokens):
            raise Refused(401, "Unauthorized")
        bot = self._by_token[token] = self.create(int(match[1]))
        return bot

    def find(self, bot_id: int) -> Bot | None:
        return self._by_id.get(bot_id)

    def spoken_to(self, bot_id: int) -> Bot | None:
        """Where every token is a bot's, the bot of an id exists from the first word to it."""
        return self.create(bot_id) if self.open else self.find(bot_id)

    def create(self, bot_id: int) -> Bot:
        bot = self._by_id.get(bot_id)
        if bot is None:
            user = {
                "id": bot_id,
                "is_bot": True,
                "first_name": f"Bot {bot_id}",
                "username": f"sim{bot_id}_bot",
            }
            updates = UpdateQueue(bot_id, self._clock, self._changes)
            bot = self._by_id[bot_id] = Bot(bot_id, user, updates, Chats(bot_id, self._changes))
            self._changes.publish("bot", bot_id, updates.next_id)
        return bot
