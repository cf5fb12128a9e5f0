"""Telegram's limits (Bots FAQ, "My bot is hitting limits"): one model, for the 429s and for the check."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from pillarbox_simulator.answers import Refused
from pillarbox_simulator.call import Call

PACED = ("send", "copy", "forward", "edit")
NOT_PACED = frozenset(("sendChatAction", "sendMessageDraft", "sendRichMessageDraft", "editChatInviteLink"))
RECENT = 60.0
"""Seconds after a person wrote in which a send is an answer and no bulk."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`watched`: the check reports what broke them. `enforced`: such a call is answered 429 too."""

    mode: Literal["off", "watched", "enforced"] = "off"
    chat_per_second: float = 1.0
    chat_burst: int = 3
    group_calls: int = 20
    group_seconds: float = 60.0
    bulk_per_second: int = 30


def is_paced(method: str) -> bool:
    return method.startswith(PACED) and method not in NOT_PACED


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class Pace:
    """One run of the model over calls in order of time. Limits of a chat, a group and bulk are apart."""

    limits: Limits
    _chats: dict[Any, _Bucket] = field(default_factory=dict)
    _groups: dict[Any, deque[float]] = field(default_factory=dict)
    _bulk: dict[int, deque[float]] = field(default_factory=dict)

    def broken(self, bot_id: int, chat_id: Any, at: float, *, bulk: bool) -> tuple[str, float] | None:
        """The limit that a call breaks and the seconds until it would not; the others are counted."""
        checks = (
            [self._group_wait(bot_id, chat_id, at)]
            if _is_group(chat_id)
            else [self._chat_wait(bot_id, chat_id, at)]
        )
        checks.append(self._bulk_wait(bot_id, at) if bulk else None)
        worst = max(
            (check for check in checks if check is not None), key=lambda check: check[1], default=None
        )
        if worst is None:
            self._count(bot_id, chat_id, at, bulk)
        return worst

    def _chat_wait(self, bot_id: int, chat_id: Any, at: float) -> tuple[str, float] | None:
        bucket = self._chats.setdefault((bot_id, chat_id), _Bucket(self.limits.chat_burst, at))
        rate = self.limits.chat_per_second
        bucket.tokens = min(self.limits.chat_burst, bucket.tokens + (at - bucket.at) * rate)
        bucket.at = at
        return None if bucket.tokens >= 1 else ("chat", (1 - bucket.tokens) / rate)

    def _group_wait(self, bot_id: int, chat_id: Any, at: float) -> tuple[str, float] | None:
        times = self._groups.setdefault((bot_id, chat_id), deque())
        return _window("group", times, at, self.limits.group_calls, self.limits.group_seconds)

    def _bulk_wait(self, bot_id: int, at: float) -> tuple[str, float] | None:
        return _window("bulk", self._bulk.setdefault(bot_id, deque()), at, self.limits.bulk_per_second, 1.0)

    def _count(self, bot_id: int, chat_id: Any, at: float, bulk: bool) -> None:
        if _is_group(chat_id):
            self._groups[(bot_id, chat_id)].append(at)
        else:
            self._chats[(bot_id, chat_id)].tokens -= 1
        if bulk:
            self._bulk[bot_id].append(at)


def _is_group(chat_id: Any) -> bool:
    return str(chat_id).startswith(("-", "@"))


def _window(name: str, times: deque[float], at: float, most: int, seconds: float) -> tuple[str, float] | None:
    """`most` in any window of `seconds`, exactly."""
    while times and times[0] <= at - seconds:
        times.popleft()
    return None if len(times) < most else (name, times[0] + seconds - at)


def too_many(seconds: float) -> Refused:
    wait = max(1, math.ceil(seconds))
    return Refused(429, f"Too Many Requests: retry after {wait}", retry_after=wait)


class Limiter:
    """The model in force. With `enforced` a call that breaks a limit is refused, and told for how long."""

    def __init__(self) -> None:
        self.put(Limits())

    def put(self, limits: Limits) -> None:
        """These limits from now on; what was sent before does not count."""
        self.limits = limits
        self._pace = Pace(limits)

    def admit(self, call: Call) -> None:
        """Raises Refused 429."""
        if self.limits.mode != "enforced" or not is_paced(call.method) or "chat_id" not in call.params:
            return
        chat = call.chat()
        bulk = call.at - chat.last_written > RECENT
        broken = self._pace.broken(call.bot.id, chat.id, call.at, bulk=bulk)
        if broken is not None:
            raise too_many(broken[1])
