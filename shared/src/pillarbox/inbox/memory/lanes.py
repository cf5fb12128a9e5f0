"""Lanes as plain objects: the rules of a turn, without a database around them."""

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pillarbox.ids import BotId, RowId, Token
from pillarbox.inbox.states import (
    End,
    Failed,
    FailedUpdate,
    Finished,
    Incoming,
    Later,
    Lease,
    Limits,
    OutboxRow,
    Released,
    Turn,
)

MOST_TURNS = 16  # then the lane goes behind the others that wait
SUSPECT = 2

LaneKey = tuple[BotId, str]


@dataclass(slots=True)
class Waiting:
    row: RowId
    update: Incoming
    accepted_at: float


@dataclass(slots=True)
class Lane:
    """`runs` counts the runs without an end of the first of `waiting`."""

    waiting: deque[Waiting] = field(default_factory=deque)
    token: Token | None = None
    lease_until: float = 0.0
    not_before: float = 0.0
    runs: int = 0
    turns: int = 0

    def free(self, now: float) -> bool:
        return self.token is None and self.not_before <= now


@dataclass(slots=True)
class Lanes:
    """In the order in which they wait. What a turn leaves, `failures` and `outbox`, its caller takes away."""

    limits: Limits
    now: Callable[[], float]
    clock: Callable[[], float]
    lanes: dict[LaneKey, Lane] = field(default_factory=dict)
    held: dict[Token, LaneKey] = field(default_factory=dict)
    failures: list[FailedUpdate] = field(default_factory=list)
    outbox: list[OutboxRow] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def append(self, update: Incoming) -> None:
        lane = self.lanes.setdefault((update.bot_id, update.lane), Lane())
        lane.waiting.append(Waiting(RowId(next(self.numbers)), update, self.now()))

    def waiting(self, bot_id: BotId) -> list[Incoming]:
        return [w.update for place, lane in self.lanes.items() if place[0] == bot_id for w in lane.waiting]

    def turn(self, ends: Sequence[End], slots: int, suspects: bool) -> Turn:
        leases: list[Lease] = []
        lost: set[Token] = set()
        before = len(self.failures)
        for end in {end.token: end for end in reversed(ends)}.values():  # the first end of a token counts
            if (place := self.held.pop(end.token, None)) is None:
                lost.add(end.token)
            elif self._end(place, end) and len(leases) < slots:
                leases.append(self._lease(place, self.lanes[place].turns + 1))
        self._rescue()
        leases += self._claim(slots - len(leases), suspects and not leases)
        return Turn(leases, frozenset(lost), len(self.failures) - before, self._suspects_wait())

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        until = self.clock() + self.limits.lease
        for token in tokens:
            if token in self.held:
                self.lanes[self.held[token]].lease_until = until
        return frozenset(token for token in tokens if token not in self.held)

    def _end(self, place: LaneKey, end: End) -> bool:
        """Whether the lane may go on with its next update before others are asked."""
        lane = self.lanes[place]
        lane.token = None
        match end:
            case Finished(outbox=elements):
                done = lane.waiting.popleft()
                self.outbox += [OutboxRow(*place, done.row, n, body) for n, body in enumerate(elements)]
                self._behind(place, lane)
                return bool(lane.waiting) and lane.turns < MOST_TURNS
            case Failed(error=error):
                self._fail(place, lane, error)
            case Released():
                lane.runs -= 1
            case Later(after=after):
                lane.runs -= 1
                lane.not_before = self.now() + after
        return False

    def _behind(self, place: LaneKey, lane: Lane) -> None:
        del self.lanes[place]
        lane.runs = 0
        if lane.waiting:
            self.lanes[place] = lane

    def _fail(self, place: LaneKey, lane: Lane, error: str) -> None:
        gone = lane.waiting.popleft()
        update = gone.update
        failed = FailedUpdate(
            row=gone.row,
            bot_id=update.bot_id,
            update_id=update.update_id,
            kind=update.kind,
            lane=update.lane,
            chat_id=update.chat_id,
            user_id=update.user_id,
            accepted_at=at(gone.accepted_at),
            failed_at=at(self.now()),
            runs=lane.runs,
            error=error,
            body=update.body,
        )
        self.failures.append(failed)
        self._behind(place, lane)

    def _rescue(self) -> None:
        """Leases that ran out, and updates that ran too often without an end."""
        tick = self.clock()
        for place, lane in list(self.lanes.items()):
            if lane.token is not None and lane.lease_until < tick:
                del self.held[lane.token]
                lane.token = None
            if lane.token is None and lane.runs >= self.limits.max_handler_runs:
                self._fail(place, lane, f"NoEnd: {lane.runs} runs had no end")

    def _claim(self, slots: int, suspects: bool) -> list[Lease]:
        if slots <= 0:
            return []
        now = self.now()
        free = [(place, lane.runs >= SUSPECT) for place, lane in self.lanes.items() if lane.free(now)]
        alone = [place for place, suspect in free if suspect][:1] if suspects else []
        chosen = alone or [place for place, suspect in free if not suspect][:slots]
        return [self._lease(place, 0) for place in chosen]

    def _lease(self, place: LaneKey, turns: int) -> Lease:
        lane = self.lanes[place]
        front, suspect = lane.waiting[0], lane.runs >= SUSPECT
        lane.token, lane.lease_until = Token(next(self.numbers)), self.clock() + self.limits.lease
        lane.runs, lane.turns = lane.runs + 1, turns
        self.held[lane.token] = place
        return Lease(
            token=lane.token,
            row=front.row,
            bot_id=place[0],
            lane=place[1],
            update_id=front.update.update_id,
            kind=front.update.kind,
            body=front.update.body,
            run=lane.runs,
            accepted_at=at(front.accepted_at),
            suspect=suspect,
        )

    def _suspects_wait(self) -> bool:
        now = self.now()
        return any(lane.runs >= SUSPECT and lane.free(now) for lane in self.lanes.values())


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
