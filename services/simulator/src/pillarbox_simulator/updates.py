"""The updates of one bot that it has not taken yet: their order, their queue keys and how long they live."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pillarbox_simulator.changes import Changes
from pillarbox_simulator.clock import Clock

Update = dict[str, Any]
Key = tuple[str, Any]

DAY = 86_400.0
LIFETIMES = {
    "callback_query": 150.0,
    "shipping_query": 150.0,
    "pre_checkout_query": 150.0,
    "inline_query": 30.0,
    "chosen_inline_result": 600.0,
}
"""Seconds; every other kind lives a day (tdlib/telegram-bot-api, Client.cpp)."""

NOT_BY_DEFAULT = frozenset(("chat_member", "message_reaction", "message_reaction_count"))
BY_USER = frozenset(("callback_query", "shipping_query", "pre_checkout_query"))
MOST_PENDING = 100_000
FIRST_IDS = (2_000_001, 10**9)

_encode = msgspec.json.Encoder().encode


def kind_of(update: Update) -> str:
    """The one top-level key that is not `update_id`: the set of kinds is open."""
    return next((name for name in update if name != "update_id"), "")


def key_of(update: Update) -> Key:
    """Updates with one key are delivered one after the other (tdlib/telegram-bot-api, WebhookActor)."""
    kind = kind_of(update)
    event = update.get(kind)
    if not isinstance(event, dict):
        return kind, update["update_id"]
    user = (event.get("from") or event.get("user") or {}).get("id")
    chat = (event.get("chat") or {}).get("id")
    if kind in BY_USER:
        return "user", user
    if kind in ("poll", "poll_answer"):
        return "poll", event.get("id") or event.get("poll_id")
    if kind in ("chat_member", "chat_join_request"):
        return "member", user
    if chat is None:
        return kind, user if user is not None else update["update_id"]
    apart = kind.startswith(("message_reaction", "business")) or "boost" in kind
    return (kind if apart else "chat"), chat


@dataclass(slots=True, eq=False)
class Pending:
    serial: int
    update_id: int
    kind: str
    key: Key
    body: bytes
    expires_at: float
    attempts: int = 0


@dataclass(slots=True)
class UpdateQueue:
    """In order of arrival. `arrived` is told of each new update by whoever delivers them now."""

    bot_id: int
    clock: Clock
    changes: Changes
    next_id: int = field(default_factory=lambda: random.randint(*FIRST_IDS))  # noqa: S311 - no secret
    pending: dict[int, Pending] = field(default_factory=dict)
    """By serial number, which is ours: an `update_id` may be queued twice on purpose."""
    next_serial: int = 1
    arrived: Callable[[Pending], None] = lambda pending: None
    overflowed: int = 0
    expired: int = 0

    def add(self, update: Update, update_id: int | None = None) -> int | None:
        """Gives the update its id and queues it; None when the queue is full, as Telegram's is at 100,000."""
        if len(self.pending) >= MOST_PENDING:
            self.overflowed += 1
            return None
        if update_id is None:
            update_id, self.next_id = self.next_id, self.next_id + 1
        numbered = {"update_id": update_id} | update
        expires_at = self.clock.now() + self.clock.real(LIFETIMES.get(kind_of(numbered), DAY))
        pending = self.put(self.next_serial, expires_at, numbered)
        self.changes.publish("update", self.bot_id, pending.serial, expires_at, numbered)
        self.arrived(pending)
        return update_id

    def put(self, serial: int, expires_at: float, update: Update) -> Pending:
        """Without telling anyone: the journal puts back what it kept."""
        body = _encode(update)
        pending = Pending(serial, update["update_id"], kind_of(update), key_of(update), body, expires_at)
        self.pending[serial] = pending
        self.next_serial = max(self.next_serial, serial + 1)
        return pending

    def settle(self, pending: Pending) -> None:
        """The update was taken, or given up."""
        if self.pending.pop(pending.serial, None) is not None:
            self.changes.publish("settled", self.bot_id, pending.serial)

    def confirm(self, offset: int) -> None:
        """Every update with a smaller id is taken."""
        for pending in [p for p in self.pending.values() if p.update_id < offset]:
            self.settle(pending)

    def keep_last(self, count: int) -> None:
        """What a negative offset does: all but the last `count` are forgotten."""
        for pending in list(self.pending.values())[:-count]:
            self.settle(pending)

    def clear(self) -> None:
        for pending in list(self.pending.values()):
            self.settle(pending)

    def expire(self) -> None:
        now = self.clock.now()
        for pending in [p for p in self.pending.values() if p.expires_at < now]:
            self.expired += 1
            self.settle(pending)

    def head(self, limit: int) -> Iterator[bytes]:
        for pending in list(self.pending.values())[:limit]:
            yield pending.body
