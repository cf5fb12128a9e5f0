"""A turn: ends runs, rescues what lost its holder, leases what is next. Its rules are `inbox_turn`'s."""

import sqlite3
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox.kept import kept_error
from pillarbox.inbox.sqlite import fsm as states
from pillarbox.inbox.sqlite import statements
from pillarbox.inbox.sqlite.numbers import numbers
from pillarbox.inbox.sqlite.times import SECOND, at, micros
from pillarbox.inbox.states import (
    End,
    Failed,
    Finished,
    FsmKey,
    Later,
    Lease,
    Limits,
    Released,
    Retried,
    Turn,
    Uncounted,
    divided,
)

MOST_TURNS = 16  # then the lane goes behind the others that wait
MOST_LATER = 7 * 24 * 3600.0
SUSPECT = 2


@dataclass(frozen=True, slots=True)
class Moment:
    """`now` in microseconds since 1970; `tick` in seconds of the machine's clock, which counts leases."""

    now: int
    tick: float


@dataclass(slots=True)
class _Turn:
    db: sqlite3.Connection
    bots: Set[BotId]
    limits: Limits
    moment: Moment
    free: int
    brings_fsm: bool
    numbers: Iterator[int]
    leases: list[Lease] = field(default_factory=list)
    lost: set[Token] = field(default_factory=set)
    failed: dict[int, list[int]] = field(default_factory=dict)
    stale: set[Token] = field(default_factory=set)
    given_up: set[Token] = field(default_factory=set)

    # ends

    def uncount(self, kept: Uncounted) -> None:
        if not self.db.execute(statements.UNCOUNTED, (kept.token,)).rowcount:
            self.lost.add(kept.token)

    def end(self, end: End) -> None:
        held = self.db.execute(statements.HELD, (end.token,)).fetchone()
        if held is None:
            self.lost.add(end.token)
            return
        bot_id, lane, row, runs, turns = held
        match self.decided(row, end):
            case Finished(outbox=elements):
                self.db.executemany(
                    statements.QUEUED, [(row, n, bot_id, lane, body) for n, body in enumerate(elements)]
                )
                self.db.execute(statements.GONE, (row,))
                self.go_on(bot_id, lane, turns)
            case Failed(error=error):
                self.fail(bot_id, lane, row, runs, error)
            case Released():
                self.db.execute(statements.GIVEN_BACK, (None, max(runs - 1, 0), bot_id, lane))
            case Later(after=after):
                due = self.moment.now + micros(min(max(after, 0.0), MOST_LATER))
                self.db.execute(statements.GIVEN_BACK, (due, max(runs - 1, 0), bot_id, lane))

    def decided(self, row: int, end: End) -> End:
        """What comes of a finish whose FSM state another has written, and of an error that may pass."""
        match end:
            case Finished(fsm=writes) if not states.write(self.db, writes, self.numbers, self.moment.now):
                self.stale.add(end.token)
                return Released(end.token)
            case Retried(error=error, times=times):
                (retries,) = self.db.execute(statements.TRIED, (row,)).fetchone()
                if retries <= times:
                    return Later(end.token, end.delay(retries))
                self.given_up.add(end.token)
                return Failed(end.token, error)
        return end

    def go_on(self, bot_id: int, lane: str, turns: int) -> None:
        if self.free > 0 and turns < MOST_TURNS and self.lease(bot_id, lane, 0, turns + 1):
            return
        self.behind(bot_id, lane)

    def behind(self, bot_id: int, lane: str) -> None:
        if self.db.execute(statements.HAS_MORE, (bot_id, lane)).fetchone():
            self.db.execute(statements.BEHIND, (next(self.numbers), bot_id, lane))
        else:
            self.db.execute(statements.EMPTY, (bot_id, lane))

    def fail(self, bot_id: int, lane: str, row: int, runs: int, error: str) -> None:
        # Without what no parameter can be; of a sealed update the file's own function takes the message.
        self.db.execute(statements.FAILED, (self.moment.now, runs, kept_error(error), row))
        self.db.execute(statements.GONE, (row,))
        self.failed.setdefault(bot_id, []).append(row)
        self.behind(bot_id, lane)

    # what nobody ends

    def rescue(self) -> None:
        """Leases that ran out, runs that were too many, and what was to wait until now."""
        dead = self.db.execute(statements.EXPIRED, (self.moment.tick,)).fetchall()
        for bot_id, lane, runs in dead:
            if bot_id in self.bots:
                self.take_back(bot_id, lane, runs)
        for bot in self.bots:
            spent = self.db.execute(statements.SPENT, (bot, self.limits.max_handler_runs)).fetchall()
            for bot_id, lane, runs in spent:
                self.take_back(bot_id, lane, runs)
        self.db.execute(statements.DUE, (self.moment.now,))

    def take_back(self, bot_id: int, lane: str, runs: int) -> None:
        front = self.db.execute(statements.HAS_MORE, (bot_id, lane)).fetchone()
        if front is None:
            self.db.execute(statements.EMPTY, (bot_id, lane))
        elif runs >= self.limits.max_handler_runs:
            self.fail(bot_id, lane, front[0], runs, f"NoEnd: {runs} runs had no end")
        else:
            self.db.execute(statements.GIVEN_BACK, (None, runs, bot_id, lane))

    # leases

    def claim(self, statement: str) -> None:
        """The lanes that have waited longest, of all bots."""
        waiting: list[tuple[int, int, str, int]] = []
        for bot in self.bots:
            waiting += self.db.execute(statement, (bot, self.free)).fetchall()
        for _, bot_id, lane, runs in sorted(waiting)[: self.free]:
            if not self.lease(bot_id, lane, runs, 0):
                self.db.execute(statements.EMPTY, (bot_id, lane))

    def lease(self, bot_id: int, lane: str, runs: int, turns: int) -> bool:
        """Whether the lane has an update; its run is counted here."""
        front = self.db.execute(statements.FRONT, (bot_id, lane)).fetchone()
        if front is None:
            return False
        row, update_id, kind, accepted_at, body = front
        token, until = next(self.numbers), self.moment.tick + self.limits.lease
        self.db.execute(statements.LEASED, (token, until, row, runs + 1, turns, bot_id, lane))
        self.free -= 1
        self.leases.append(
            Lease(
                token=Token(token),
                row=RowId(row),
                bot_id=BotId(bot_id),
                lane=lane,
                update_id=UpdateId(update_id),
                kind=kind,
                body=body,
                run=runs + 1,
                accepted_at=at(accepted_at),
                age=(self.moment.now - accepted_at) / SECOND,
                suspect=runs >= SUSPECT,
                fsm=states.value(self.db, FsmKey(BotId(bot_id), lane)) if self.brings_fsm else None,
            )
        )
        return True

    def suspects_wait(self) -> bool:
        return any(self.db.execute(statements.SUSPECT, (bot, 1)).fetchone() for bot in self.bots)


def turn(
    db: sqlite3.Connection,
    ends: Sequence[End],
    slots: int,
    *,
    suspects: bool,
    fsm: bool,
    rescue: bool,
    bots: Set[BotId],
    limits: Limits,
    moment: Moment,
) -> Turn:
    turn = _Turn(db, bots, limits, moment, slots, fsm, numbers(db))
    keeps, ending = divided(ends)
    for kept in keeps:
        turn.uncount(kept)
    for end in ending:
        turn.end(end)
    if rescue:
        turn.rescue()
    if suspects and turn.free > 0 and not turn.leases:
        turn.free = 1
        turn.claim(statements.SUSPECT)
        turn.free = 0 if turn.leases else slots
    if turn.free > 0:
        turn.claim(statements.FREE)
    for bot_id, written in turn.failed.items():
        trim_failed(db, bot_id, written, limits.max_failed)
    failed = sum(map(len, turn.failed.values()))
    stale, given_up = frozenset(turn.stale), frozenset(turn.given_up)
    return Turn(turn.leases, frozenset(turn.lost), failed, turn.suspects_wait(), stale, given_up)


def trim_failed(db: sqlite3.Connection, bot_id: int, written: Sequence[int], most: int) -> None:
    """Keeps the newest `most`, and what was just written in any case; counts what it forgets."""
    old = [row for row in db.execute(statements.TOO_MANY, (bot_id, most)) if row[0] not in written]
    if old:
        db.executemany(statements.FORGET_FAILED, old)
        db.execute(statements.FAILED_TRIMMED, (bot_id, len(old)))
