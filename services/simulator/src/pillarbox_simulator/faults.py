"""What goes wrong on purpose: which calls, how often, and how. Seeded, so that a run can be repeated."""

import asyncio
import random
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from pillarbox_simulator.answers import Answer, Refused, Silence, page, refusal

Kind = Literal[
    "429",
    "400",
    "401",
    "403",
    "404",
    "409",
    "500",
    "502",
    "504",
    "hang",
    "hang_after",
    "reset_before",
    "reset_after",
    "slow",
]
SILENT = frozenset(("hang", "hang_after", "reset_before", "reset_after"))
TAKES_EFFECT = frozenset(("hang_after", "reset_after", "slow"))

DESCRIPTIONS = {
    400: "Bad Request: chat not found",
    401: "Unauthorized",
    403: "Forbidden: bot was blocked by the user",
    404: "Not Found",
    409: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    500: "Internal Server Error",
}
SLOW = 0.05  # what the Bot API takes for most calls
PAGES = {502: "Bad Gateway", 504: "Gateway Timeout"}


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. It looks at the calls that match `bot_id`, `chat_id` and `method` (`send*` is a pattern too).

    Of these it hits the `nth` (or the ones in a list; 1 is the first), each `every`-th, or each with
    `probability`, `times` calls at most. A 429 without `retry_after` carries no parameters. A hang ends after
    `seconds`, or when the caller gives up. `_after` kinds take effect first: only the answer is lost. A slow
    call takes effect at once, and is answered as ever after `seconds` (0.05 where not said).
    """

    kind: Kind
    id: str = ""
    bot_id: int | None = None
    chat_id: int | str | None = None
    method: str | list[str] | None = None
    nth: int | list[int] | None = None
    every: int | None = None
    probability: float = 1.0
    seed: int = 0
    times: int | None = None
    retry_after: int | None = None
    description: str | None = None
    seconds: float | None = None

    @property
    def takes_effect(self) -> bool:
        return self.kind in TAKES_EFFECT

    @property
    def delay(self) -> float:
        """How long a call that took effect waits for its own answer."""
        return (SLOW if self.seconds is None else self.seconds) if self.kind == "slow" else 0.0

    def answer(self, over: asyncio.Event | None = None) -> Answer | Silence:
        if self.kind in SILENT:
            return Silence(self.seconds if self.kind.startswith("hang") else 0.0, over)
        code = int(self.kind)
        if code in PAGES:
            return page(code, PAGES[code])
        return refusal(Refused(code, self.description or self._description(code), self.retry_after))

    def _description(self, code: int) -> str:
        if code != 429:
            return DESCRIPTIONS[code]
        return "Too Many Requests" + (f": retry after {self.retry_after}" if self.retry_after else "")


@dataclass(slots=True, eq=False)
class Rule:
    """A fault in force. `over` ends the hangs that it began."""

    fault: Fault
    over: asyncio.Event = field(default_factory=asyncio.Event)
    seen: int = 0
    hits: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.fault.seed)  # noqa: S311 - repeatable on purpose

    def answer(self) -> Answer | Silence:
        return self.fault.answer(self.over)

    def hit(self, bot_id: int, method: str, chat_id: Any) -> bool:
        fault = self.fault
        if not self._looks_at(bot_id, method, chat_id):
            return False
        self.seen += 1
        if fault.times is not None and self.hits >= fault.times:
            return False
        hit = self._chosen()
        self.hits += hit
        return hit

    def _looks_at(self, bot_id: int, method: str, chat_id: Any) -> bool:
        fault = self.fault
        if fault.bot_id is not None and fault.bot_id != bot_id:
            return False
        if fault.chat_id is not None and str(fault.chat_id) != str(chat_id):
            return False
        if fault.method is None:
            return method != "getUpdates"
        patterns = fault.method if isinstance(fault.method, list) else [fault.method]
        return any(fnmatchcase(method.lower(), pattern.lower()) for pattern in patterns)

    def _chosen(self) -> bool:
        fault = self.fault
        if fault.nth is not None:
            return self.seen in (fault.nth if isinstance(fault.nth, list) else [fault.nth])
        if fault.every is not None:
            return self.seen % fault.every == 0
        return fault.probability >= 1.0 or self.chance.random() < fault.probability


class Faults:
    """The rules in force; the first that hits a call decides. A rule without a method spares getUpdates."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def __bool__(self) -> bool:
        return bool(self._rules)

    def put(self, faults: list[Fault]) -> None:
        """These rules instead of the ones in force, counted from zero. A hang whose rule is gone ends."""
        before = {msgspec.json.encode(rule.fault): rule.over for rule in self._rules}
        after = [(fault, before.pop(msgspec.json.encode(fault), None)) for fault in faults]
        for over in before.values():
            over.set()
        self._rules = [Rule(fault, over or asyncio.Event()) for fault, over in after]

    def remove(self, fault_id: str | None = None) -> int:
        """Takes away the rules with this id, or all; answers how many went."""
        going = [rule for rule in self._rules if fault_id is None or rule.fault.id == fault_id]
        for rule in going:
            rule.over.set()
        self._rules = [rule for rule in self._rules if rule not in going]
        return len(going)

    def pick(self, bot_id: int, method: str, chat_id: Any) -> Rule | None:
        return next((rule for rule in self._rules if rule.hit(bot_id, method, chat_id)), None)

    def shown(self) -> list[dict[str, Any]]:
        return [
            {**msgspec.to_builtins(rule.fault), "seen": rule.seen, "hits": rule.hits} for rule in self._rules
        ]
