"""What the calls of the control plane take, from their query or body."""

from typing import Any

import msgspec

from pillarbox_simulator.faults import Fault
from pillarbox_simulator.ledger import Query


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class Written(Strict):
    """A user writes. `name` is what the user, or in a private chat the chat, is called from now on."""

    bot_id: int
    chat_id: int
    text: str
    user_id: int | None = None
    name: str | None = None


class Pressed(Strict):
    bot_id: int
    chat_id: int
    message_id: int
    data: str
    user_id: int | None = None


class Happened(Strict):
    """Any update. With an `update_id` in it, that one is used, also twice."""

    bot_id: int
    update: dict[str, Any]


class Opened(Strict):
    bot_id: int
    chat_id: int
    name: str | None = None


class FaultSet(Strict):
    faults: list[Fault]


class ClockSet(Strict):
    """`scale` 100: retries and expiries run a hundred times as fast. `deadline`: a webhook's real seconds."""

    scale: float | None = None
    deadline: float | None = None


class Reset(Strict):
    webhooks: bool = False


class CheckAsked(Strict):
    expected: dict[str, int] | None = None
    bot_id: int | None = None
    after: float | None = None


class LedgerAsked(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int | None = None


class WaitAsked(Query, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wait for `count` matching calls, `timeout` seconds at most."""

    count: int = 1
    timeout: float = 10.0


class BotAsked(Strict):
    bot_id: int


class ChatAsked(Strict):
    bot_id: int
    chat_id: int


class FaultAsked(Strict):
    id: str | None = None
