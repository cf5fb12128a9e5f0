"""A turn in the words of `inbox_turn`, and its answer in ours."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pillarbox.errors import StorageLocked, StorageUnavailable
from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox import fsm as states
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Bytes, Float8s, Int2s, Int4s, Int8s, Texts
from pillarbox.inbox.asking import Row
from pillarbox.inbox.connections import Pool
from pillarbox.inbox.kept import kept_error
from pillarbox.inbox.states import (
    End,
    Failed,
    Finished,
    FsmValue,
    Later,
    Lease,
    OutboxRow,
    Released,
    Retried,
    Turn,
    Uncounted,
    divided,
)
from pillarbox.settings import InboxSettings

FINISH, FAIL, RELEASE, LATER = range(4)
LEASE, SUSPECT, LOST, FAILED, SUSPECTS, STALE, GIVEN_UP, FOREMOST = range(8)

MOST_LATER = 7 * 24 * 3600.0
RESCUE_EVERY = 0.25


class Turns:
    def __init__(self, pool: Pool, settings: InboxSettings, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._settings = settings
        self._clock = clock
        self._rescue_at = float("-inf")
        self._uncounting = False

    async def turn(self, ends: Sequence[End], slots: int, suspects: bool, fsm: bool) -> Turn:
        """A lane that somebody else has locked is found by halves, and keeps only its own end."""
        try:
            return await self._turn(ends, slots, suspects, fsm)
        except StorageLocked:
            if not ends:
                raise
            if len(ends) == 1:
                return Turn([], locked=frozenset({ends[0].token}))
        keeps, ending = divided(ends)
        ends, half = [*keeps, *ending], (len(keeps) + len(ending)) // 2
        first = await self.turn(ends[:half], 0, False, fsm)
        try:
            second = await self.turn(ends[half:], slots, suspects, fsm)
        except StorageUnavailable:
            second = Turn([], locked=frozenset(end.token for end in ends[half:]))
        return _both(first, second)

    async def _turn(self, ends: Sequence[End], slots: int, suspects: bool, fsm: bool) -> Turn:
        now = self._clock()
        rescue = now >= self._rescue_at
        if rescue:
            self._rescue_at = now + min(RESCUE_EVERY, self._settings.lease / 4)
        limits = [slots, self._settings.lease, self._settings.max_handler_runs, self._settings.max_failed]
        keeps, ending = divided(ends)
        self._uncounting |= bool(keeps)  # from then on, an end may be of a run that was uncounted
        given = [*_ends(ending), *limits, rescue, suspects]
        if fsm or self._uncounting or any(map(_is_decided_first, ending)):
            uncounted = Int8s([end.token for end in keeps]) if self._uncounting else None
            rows = await self._pool.execute(sql.RUN_TURN, [*given, uncounted, *_decided_first(ending), fsm])
        else:
            rows = await self._pool.execute(sql.TURN, given)
        return _turn(rows, ending)


def _both(first: Turn, second: Turn) -> Turn:
    """`first` has leased nothing."""
    return replace(
        second,
        lost=first.lost | second.lost,
        failed=first.failed + second.failed,
        suspects=first.suspects or second.suspects,
        stale=first.stale | second.stale,
        given_up=first.given_up | second.given_up,
        foremost=[*first.foremost, *second.foremost],
        locked=first.locked | second.locked,
    )


def _is_decided_first(end: End) -> bool:
    return isinstance(end, Retried) or (isinstance(end, Finished) and bool(end.fsm))


def _decided_first(ends: Sequence[End]) -> list[Any]:
    """What `inbox_run_turn` takes beyond `inbox_turn`."""
    retried = [end for end in ends if isinstance(end, Retried)]
    written = [(end.token, write) for end in ends if isinstance(end, Finished) for write in end.fsm]
    return [
        Int8s([end.token for end in retried]),
        Float8s([end.first for end in retried]),
        Float8s([end.most for end in retried]),
        Int4s([end.times for end in retried]),
        *states.columns(written),
    ]


def _ends(once: Sequence[End]) -> list[Any]:
    """One array a column."""
    queued = [
        (end.token, n, body) for end in once if isinstance(end, Finished) for n, body in enumerate(end.outbox)
    ]
    return [
        Int8s([end.token for end in once]),
        Int2s([_what(end) for end in once]),
        Float8s([min(max(end.after, 0.0), MOST_LATER) if isinstance(end, Later) else 0.0 for end in once]),
        Texts([_error(end.error) if isinstance(end, Failed | Retried) else None for end in once]),
        Int8s([token for token, _, _ in queued]),
        Int4s([n for _, n, _ in queued]),
        Bytes([body for _, _, body in queued]),
    ]


def _what(end: End) -> int:
    match end:
        case Finished():
            return FINISH
        case Failed():
            return FAIL
        case Released():
            return RELEASE
        case Later() | Retried():
            return LATER
        case Uncounted():
            raise ValueError("a run that goes on has not ended")


def _error(text: str) -> bytes:
    """What no database takes must not cost the others their turn. Which are sealed the database knows."""
    return kept_error(text).encode()


def _turn(rows: Sequence[Row], ended: Sequence[End]) -> Turn:
    leases: list[Lease] = []
    foremost: list[Row] = []
    named: dict[int, set[Token]] = {LOST: set(), STALE: set(), GIVEN_UP: set()}
    failed, suspects = 0, False
    for row in rows:
        what = row[0]
        if what in (LEASE, SUSPECT):
            leases.append(_lease(row))
        elif what in named:
            named[what].add(Token(row[1]))
        elif what == FAILED:
            failed = row[2]
        elif what == SUSPECTS:
            suspects = True
        elif what == FOREMOST:
            foremost.append(row)
    lost, stale, given_up = (frozenset(named[what]) for what in (LOST, STALE, GIVEN_UP))
    rows_out = _queued(foremost, ended) if foremost else ()
    return Turn(leases, lost, failed, suspects, stale, given_up, foremost=rows_out)


def _queued(foremost: Sequence[Row], ended: Sequence[End]) -> list[OutboxRow]:
    outboxes = {end.token: end.outbox for end in ended if isinstance(end, Finished)}
    return [
        OutboxRow(BotId(bot_id), lane, RowId(row_id), n, body)
        for _, token, row_id, bot_id, _, _, _, lane, *_ in foremost
        for n, body in enumerate(outboxes[Token(token)])
    ]


def _lease(row: Row) -> Lease:
    what, token, row_id, bot_id, update_id, accepted_at, run, lane, kind, body, *fsm, now = row
    return Lease(
        token=Token(token),
        row=RowId(row_id),
        bot_id=BotId(bot_id),
        lane=lane,
        update_id=UpdateId(update_id),
        kind=kind,
        body=body,
        run=run,
        accepted_at=datetime.fromtimestamp(accepted_at, UTC),
        age=now - accepted_at,
        suspect=what == SUSPECT,
        fsm=FsmValue(fsm[0] or 0, fsm[1], fsm[2]) if fsm else None,
    )
