"""Lanes as plain objects: the rules of a turn, without a database around them."""

import time
from collections import deque
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pillarbox.ids import BotId, RowId, Token
from pillarbox.inbox.kept import kept_error
from pillarbox.inbox.memory.fsm import Fsm
from pillarbox.inbox.states import (
    NOTHING,
    End,
    Failed,
    FailedUpdate,
    Finished,
    FsmKey,
    Incoming,
    Later,
    Lease,
    Limits,
    OutboxRow,
    Released,
    Retried,
    Turn,
    divided,
)

MOST_TURNS = 16  # then the lane goes behind the others that wait
SUSPECT = 2

LaneKey = tuple[BotId, str]


@dataclass(slots=True)
class Waiting:
    row: RowId
    update: Incoming
    accepted_at: float
    retries: int = 0


@dataclass(slots=True)
class Lane:
    """`runs` counts the runs without an end of the first of `waiting`, without one that was uncounted."""

    waiting: deque[Waiting] = field(default_factory=deque)
    token: Token | None = None
    lease_until: float = 0.0
    not_before: float = 0.0
    runs: int = 0
    turns: int = 0
    uncounted: bool = False

    @property
    def suspect(self) -> bool:
        return self.runs >= SUSPECT

    def free(self, now: float) -> bool:
        return self.token is None and self.not_before <= now


@dataclass(frozen=True, slots=True)
class Moment:
    """`now` in Unix seconds; `tick` in seconds of the clock that counts leases."""

    now: float
    tick: float


@dataclass(slots=True)
class Lanes:
    """In the order in which they wait. What a turn leaves, `failures` and `outbox`, its caller takes away."""

    limits: Limits
    last: int = field(default_factory=lambda: time.time_ns() // 1000)
    """Of the numbers for rows and tokens; none is used twice, also where the queue outlived the process."""
    lanes: dict[LaneKey, Lane] = field(default_factory=dict)
    held: dict[Token, LaneKey] = field(default_factory=dict)
    failures: list[FailedUpdate] = field(default_factory=list)
    outbox: list[OutboxRow] = field(default_factory=list)
    fsm: Fsm = field(default_factory=Fsm)

    def number(self) -> int:
        self.last += 1
        return self.last

    def append(self, update: Incoming, now: float) -> None:
        lane = self.lanes.setdefault((update.bot_id, update.lane), Lane())
        lane.waiting.append(Waiting(RowId(self.number()), update, now))

    def waiting(self, bot_id: BotId) -> list[Incoming]:
        return [w.update for place, lane in self.lanes.items() if place[0] == bot_id for w in lane.waiting]

    def turn(
        self,
        ends: Sequence[End],
        slots: int,
        *,
        suspects: bool,
        moment: Moment,
        bots: Set[BotId] | None = None,
    ) -> Turn:
        """`bots`: whose lanes are leased and rescued; None is everybody's."""
        leases: list[Lease] = []
        before = len(self.failures)
        keeps, ending = divided(ends)
        lost = {end.token for end in (*keeps, *ending) if end.token not in self.held}
        stale, given_up = set[Token](), set[Token]()
        for kept in keeps:
            self._uncount(kept.token)
        for end in ending:
            if (place := self.held.pop(end.token, None)) is None:
                continue
            decided = self._decided(self.lanes[place], end)
            if isinstance(end, Finished) and decided is not end:
                stale.add(end.token)
            if isinstance(end, Retried) and isinstance(decided, Failed):
                given_up.add(end.token)
            if self._end(place, decided, moment) and len(leases) < slots:
                leases.append(self._lease(place, self.lanes[place].turns + 1, moment))
        ours = [place for place in self.lanes if bots is None or place[0] in bots]
        self._rescue(ours, moment)
        free = [place for place in ours if place in self.lanes and self.lanes[place].free(moment.now)]
        leases += self._claim(free, slots - len(leases), suspects and not leases, moment)
        waiting = any(self.lanes[place].suspect and self.lanes[place].token is None for place in free)
        failed = len(self.failures) - before
        return Turn(leases, frozenset(lost), failed, waiting, frozenset(stale), frozenset(given_up))

    def renew(self, tokens: Sequence[Token], tick: float) -> frozenset[Token]:
        until = tick + self.limits.lease
        for token in tokens:
            if token in self.held:
                self.lanes[self.held[token]].lease_until = until
        return frozenset(token for token in tokens if token not in self.held)

    def abandon(self, bots: Set[BotId]) -> None:
        """The process that held these bots' leases has ended: the next turn takes them back."""
        for place in self.held.values():
            if place[0] in bots:
                self.lanes[place].lease_until = float("-inf")

    def _uncount(self, token: Token) -> None:
        if (place := self.held.get(token)) is not None and not self.lanes[place].uncounted:
            self.lanes[place].uncounted = True
            self.lanes[place].runs -= 1

    def _decided(self, lane: Lane, end: End) -> End:
        """What comes of a finish whose FSM state another has written, and of an error that may pass."""
        match end:
            case Finished(fsm=writes) if not self.fsm.write(writes, self.number):
                return Released(end.token)
            case Retried(error=error, times=times):
                front = lane.waiting[0]
                front.retries += 1
                return (
                    Failed(end.token, error)
                    if front.retries > times
                    else Later(end.token, end.delay(front.retries))
                )
        return end

    def _end(self, place: LaneKey, end: End, moment: Moment) -> bool:
        """Whether the lane may go on with its next update before others are asked."""
        lane = self.lanes[place]
        lane.token, lane.runs, lane.uncounted = None, lane.runs + lane.uncounted, False
        match end:
            case Finished(outbox=elements):
                done = lane.waiting.popleft()
                self.outbox += [OutboxRow(*place, done.row, n, body) for n, body in enumerate(elements)]
                self._behind(place, lane)
                return bool(lane.waiting) and lane.turns < MOST_TURNS
            case Failed(error=error):
                self._fail(place, lane, error, moment)
            case Released():
                lane.runs -= 1
            case Later(after=after):
                lane.runs -= 1
                lane.not_before = moment.now + after
        return False

    def _behind(self, place: LaneKey, lane: Lane) -> None:
        del self.lanes[place]
        lane.runs = 0
        if lane.waiting:
            self.lanes[place] = lane

    def _fail(self, place: LaneKey, lane: Lane, error: str, moment: Moment) -> None:
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
            failed_at=at(moment.now),
            runs=lane.runs,
            error=kept_error(error, sealed=update.sealed),
            body=update.body,
            sealed=update.sealed,
        )
        self.failures.append(failed)
        self._behind(place, lane)

    def _rescue(self, places: Sequence[LaneKey], moment: Moment) -> None:
        """Leases that ran out, and updates that ran too often without an end."""
        for place in places:
            lane = self.lanes[place]
            if lane.token is not None and lane.lease_until < moment.tick:
                del self.held[lane.token]
                lane.token = None
            if lane.token is None and lane.runs >= self.limits.max_handler_runs:
                self._fail(place, lane, f"NoEnd: {lane.runs} runs had no end", moment)

    def _claim(self, free: Sequence[LaneKey], slots: int, suspects: bool, moment: Moment) -> list[Lease]:
        if slots <= 0:
            return []
        alone = [place for place in free if self.lanes[place].suspect][:1] if suspects else []
        chosen = alone or [place for place in free if not self.lanes[place].suspect][:slots]
        return [self._lease(place, 0, moment) for place in chosen]

    def _lease(self, place: LaneKey, turns: int, moment: Moment) -> Lease:
        lane = self.lanes[place]
        front, suspect = lane.waiting[0], lane.suspect
        lane.token, lane.lease_until = Token(self.number()), moment.tick + self.limits.lease
        lane.runs, lane.turns, lane.uncounted = lane.runs + 1, turns, False
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
            age=moment.now - front.accepted_at,
            suspect=suspect,
            fsm=self.fsm.values.get(FsmKey(*place), NOTHING),
        )


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
