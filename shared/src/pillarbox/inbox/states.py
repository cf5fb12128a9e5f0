"""An update's states, and what moves it from one to the next.

pending ──claim──▶ claimed ──finish──▶ gone
   ▲                  │ ├──release, later, retried──▶ pending
   └─────requeue──────┤ └──fail──▶ failed ──requeue──▶ pending (at its lane's end)
                                          └──discard──▶ gone
"""

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pillarbox.ids import BotId, RowId, Token, UpdateId


class Accepted(enum.Enum):
    NEW = "new"
    REPEAT = "repeat"
    NEW_BODY = "new_body"
    """The id is known, with another body: stored as a new update, and worth a warning."""
    REFUSED = "refused"
    """The database will never take it; the caller keeps it as malformed."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """An update as it came, with what the inbox must know of it.

    `lane` is readable and complete inside a bot: `chat:42`, `user:42`, or `update:17` where it has neither;
    `chat:-100:user:42` where a group has a lane for each of its people.
    """

    bot_id: BotId
    update_id: UpdateId
    kind: str
    lane: str
    body: bytes = field(repr=False)
    chat_id: int | None = None
    user_id: int | None = None
    sealed: bool = False
    """A text, caption or document in it is an OpenPGP message: of its errors no message is kept."""


@dataclass(frozen=True, slots=True)
class Malformed:
    bot_id: BotId
    reason: str
    body: bytes = field(repr=False)


class FsmKey(NamedTuple):
    bot_id: BotId
    key: str


@dataclass(frozen=True, slots=True)
class FsmValue:
    """What is kept under a key. `version` is 0 where nothing is, and no other is ever used twice."""

    version: int = 0
    state: str | None = None
    data: bytes | None = field(default=None, repr=False)


NOTHING = FsmValue()


@dataclass(frozen=True, slots=True)
class Lease:
    """One update to run now. `run` counts from 1 and includes this one; a suspect runs alone. `age` is of the
    update now: seconds since it was accepted, by the storage's clock alone.

    `fsm`: where the turn asked for it, what is kept under the key that is named like the lane.
    """

    token: Token
    row: RowId
    bot_id: BotId
    lane: str
    update_id: UpdateId
    kind: str
    body: bytes = field(repr=False)
    run: int
    accepted_at: datetime
    age: float
    suspect: bool = False
    fsm: FsmValue | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FsmWrite:
    """The whole new value of a key, and the version that was read before. Neither state nor data: no row."""

    key: FsmKey
    version: int
    state: str | None
    data: bytes | None = field(default=None, repr=False)

    @property
    def is_empty(self) -> bool:
        return self.state is None and self.data is None


@dataclass(frozen=True, slots=True)
class Finished:
    token: Token
    outbox: tuple[bytes, ...] = field(default=(), repr=False)
    """Elements as the door takes them (DESIGN, Outbound), each one JSON object, in order."""
    fsm: tuple[FsmWrite, ...] = field(default=(), repr=False)
    """All of them or none: where one of the versions is old, the update is given back, uncounted."""


@dataclass(frozen=True, slots=True)
class Failed:
    token: Token
    error: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Released:
    token: Token


@dataclass(frozen=True, slots=True)
class Later:
    token: Token
    after: float


@dataclass(frozen=True, slots=True)
class Retried:
    """An error that may pass: the update runs again, not counted, and its lane waits, `first` seconds, then
    twice as long each time, up to `most`. After `times` of that it has failed, with this error."""

    token: Token
    error: str = field(repr=False)
    first: float
    most: float
    times: int

    def delay(self, retries: int) -> float:
        """Before the retry of this number, from 1 on."""
        return min(self.most, self.first * 2.0 ** min(retries - 1, 30))


@dataclass(frozen=True, slots=True)
class Uncounted:
    """No end yet: the run is given back and its lease is kept. If nothing follows, it has not counted; the
    end that follows is as that of any other run."""

    token: Token


End = Finished | Failed | Released | Later | Retried | Uncounted


def divided(ends: Sequence[End]) -> tuple[list[Uncounted], list[End]]:
    """What keeps its lease, and what ends; of the ends of a token the first counts."""
    once: dict[Token, End] = {}
    for end in ends:
        if not isinstance(end, Uncounted):
            once.setdefault(end.token, end)
    return [end for end in ends if isinstance(end, Uncounted)], list(once.values())


@dataclass(frozen=True, slots=True)
class Turn:
    """`lost`: tokens that were no longer held. `failed`: updates that this turn put on the failed list, those
    that ran too often included. `suspects`: some wait for a process that runs nothing else. `stale`: finishes
    that changed nothing, as another had written their FSM state; the updates run again. `given_up`: retried
    too often, and failed. `locked`: ends that are not written, as somebody else's transaction holds their
    lane; they are to be shown again. `foremost`: messages of these finishes before which their lanes have
    none in the outbox, in order; whoever files them under their ids need not wait for `relay`, which hands
    them out all the same. A storage may name none."""

    leases: list[Lease]
    lost: frozenset[Token] = frozenset()
    failed: int = 0
    suspects: bool = False
    stale: frozenset[Token] = frozenset()
    given_up: frozenset[Token] = frozenset()
    locked: frozenset[Token] = frozenset()
    foremost: "Sequence[OutboxRow]" = ()


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """The `n`th (from 0) message of an update's outbox. Its id for the queue is `bot:row:n`."""

    bot_id: BotId
    lane: str
    row: RowId
    n: int
    body: bytes = field(repr=False)

    @property
    def id(self) -> str:
        return f"{self.bot_id}:{self.row}:{self.n}"


@dataclass(frozen=True, slots=True)
class Moved:
    """What a retry or discard did: how many moved; ids that have not failed; ids that run or wait."""

    moved: int
    unknown: list[UpdateId] = field(default_factory=list)
    running: list[UpdateId] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FailedUpdate:
    """One of the failed list. `row` tells apart two updates of one id; `body` is what Telegram sent."""

    row: RowId
    bot_id: BotId
    update_id: UpdateId
    kind: str
    lane: str
    chat_id: int | None
    user_id: int | None
    accepted_at: datetime
    failed_at: datetime
    runs: int
    error: str = field(repr=False)
    body: bytes = field(repr=False)
    sealed: bool = False

    @property
    def payload(self) -> Any:
        """The update as JSON, as Telegram sent it; None where the body is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Place:
    """Of a failed update in the list: the next page is what stands behind it."""

    failed_at: datetime
    row: RowId


@dataclass(frozen=True, slots=True)
class Pin:
    """The key that is trusted for a person: the first one seen, or the one that somebody trusted since."""

    user_id: int
    fingerprint: str
    pinned_at: datetime


@dataclass(frozen=True, slots=True)
class Audited:
    """A retry or discard of one update, or a change of one person's pin, and who did it."""

    at: datetime
    bot_id: BotId
    update_id: UpdateId | None
    by: str
    action: Literal["retry", "discard", "pin", "trust", "forget"]
    user_id: int | None = None
    old_fingerprint: str | None = None
    new_fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What a bot has in its inbox now, and how much its bounded lists have forgotten so far."""

    pending: int
    """Claimed ones included."""
    failed: int
    failed_trimmed: int
    malformed: int
    malformed_trimmed: int
    outbox: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a storage keeps to; seconds, and items of one bot. The settings of the same names say more."""

    lease: float = 30.0
    max_handler_runs: int = 5
    max_failed: int = 10_000
    max_malformed: int = 10_000
    seen_for: float = 72 * 3600.0
