"""Many lanes at once, one update of each: claim, run, end.

A turn ends what ended since the last one and claims as much as there is room for; the next starts as soon as
there is a reason. Two turns overlap: while the database works on one, the handlers of the other run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageRefused, StorageUnavailable
from pillarbox.ids import Token
from pillarbox.inbox import (
    End,
    Failed,
    Finished,
    Later,
    Lease,
    OutboxRow,
    Released,
    Retried,
    Turn,
    Uncounted,
)
from pillarbox.telemetry import get_logger
from pillarbox_dispatcher import metrics
from pillarbox_dispatcher.station import Station
from pillarbox_dispatcher.suspects import Suspects
from pillarbox_dispatcher.underway import Run, Underway
from pillarbox_dispatcher.watchdog import Watchdog

TURNS = 2
POLL = 1.0
SETTLE = 2.0
AGAIN = 1.0
MOST_BYTES = 8 << 20
"""Of outboxes and FSM data in one turn, so that it ends within its deadline."""

log = get_logger()
Handle = Callable[[Lease], Coroutine[Any, Any, End]]
Queued = Callable[[Sequence[OutboxRow], bool], None]
"""Told of what a turn put in the outbox: what is the foremost of its lanes, and whether there are others."""


class Lanes:
    """Owns every run and every end that is not written yet; together they never pass `concurrency`.

    A run of more than `longest` seconds could not be cancelled: it is failed and its place is free, though
    its handler may still do something. 0 is never.
    """

    def __init__(
        self,
        storage: Station,
        handle: Handle,
        watchdog: Watchdog,
        *,
        concurrency: int,
        queued: Queued = lambda foremost, others: None,
        turns: int = TURNS,
        poll: float = POLL,
        patience: float = 30.0,
        longest: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._storage = storage
        self._handle = handle
        self._watchdog = watchdog
        self._concurrency = concurrency
        self._queued = queued
        self._turns_at_once = min(turns, concurrency)
        self._poll = poll
        self._clock = clock
        self._sleep = sleep
        self._longest = longest
        self._runs = Underway()
        self._ends: list[End] = []
        self._locked: list[End] = []
        self._locked_until = float("-inf")
        self._in_turns = 0
        self._due = True
        self._stopping = False
        self._fsm = False
        self._wake = asyncio.Event()
        metrics.lanes_running.set_function(lambda: len(self._runs))
        self._suspects = Suspects(clock, patience, self._look_in)

    async def run(self, stop: asyncio.Event, grace: float, *, fsm: bool = False) -> None:
        """Until `stop` is set; then nothing new starts, and what runs has `grace` seconds to end.

        `fsm`: leases are to bring FSM state.
        """
        self._fsm = fsm
        async with asyncio.TaskGroup() as group:
            hints = group.create_task(self._hints())
            turns = [group.create_task(self._turns()) for _ in range(self._turns_at_once)]
            await stop.wait()
            hints.cancel()
            self._stopping = True
            self._uncount()
            await self._wind_up(grace)
            self._wake.set()
            await self._flush(turns)

    @property
    def unwilling(self) -> int:
        """Handlers that could not be cancelled, and still run."""
        return self._runs.endless

    def lost(self, tokens: frozenset[Token]) -> None:
        """Cancels these runs: the lane is another dispatcher's, and nothing of them is written."""
        for run in [run for token in tokens if (run := self._runs.get(token))]:
            metrics.lost_leases.inc()
            run.cancel("lost")

    def _uncount(self) -> None:
        """At once: whatever kills the process from here on, these runs have not counted."""
        self._ends += [Uncounted(run.lease.token) for run in self._runs]
        self._wake.set()

    async def _wind_up(self, grace: float) -> None:
        """Turns that are under way may still start runs, and those are given back at once."""
        await self._runs.wait(grace)
        self._runs.stop()
        await self._runs.wait(SETTLE)
        if self.unwilling:
            log.error("handlers do not end, their updates run again elsewhere", lanes=len(self._runs))

    async def _flush(self, turns: list["asyncio.Task[None]"]) -> None:
        _, late = await asyncio.wait(turns, timeout=SETTLE)
        if left := self._ends + self._locked:
            log.error("ends are not written, their updates run again elsewhere", ends=len(left))
        for turn in late:
            turn.cancel()

    async def _hints(self) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._storage.wait(self._poll)
                backoff.reset()
            except StorageUnavailable:
                await self._sleep(backoff.delay())
            except Exception as error:  # a hint is no reason to stop what runs
                log.error("waiting for updates failed", exc_info=error)
                await self._sleep(backoff.delay())
            self._fail_unwilling()
            self._look()

    def _fail_unwilling(self) -> None:
        before = self._clock() - self._longest
        for run in self._runs if self._longest else ():
            if run.since < before and run.cancelled is None:
                self._runs.disown(run)
                self._suspects.end(run.lease.token)
                self._watchdog.over(run.lease.token)
                log.error("a handler cannot be cancelled, its update has failed", lane=run.lease.lane)
                metrics.updates.add(run.lease.bot_id, "timeout")
                error = f"HandlerTimeout: longer than {self._longest:g} s, and it cannot be cancelled"
                self._ends.append(Failed(run.lease.token, error))

    def _look_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._due = True
        self._wake.set()

    async def _turns(self) -> None:
        backoff = Backoff()
        while (work := await self._work()) is not None:
            ends, slots, suspects = work
            started = self._clock()
            try:
                turn = await self._turn(ends, slots, suspects)
            except Exception as error:  # even a bug must not cost the ends of what ran
                self._take_back(ends, slots)
                _log_failure(error, backoff)
                await self._sleep(backoff.delay())
                continue
            _log_recovery(backoff)
            metrics.turn_seconds.observe(self._clock() - started)
            self._settle(ends, slots, turn, started)
            if suspects:
                self._suspects.asked()

    async def _work(self) -> tuple[list[End], int, bool] | None:
        """The next turn's ends, its free slots, and whether a suspect may take one; None when all is done."""
        while True:
            suspects, slots = self._suspects.wanted(), self._free_slots()
            if self._locked and self._clock() >= self._locked_until:
                ends, self._locked = self._locked, []
                self._in_turns += len(ends)
                return ends, 0, False
            if self._ends or (slots and (self._due or suspects)):
                ends, self._due = self._few_enough(), self._due and not slots
                self._in_turns += max(len(ends), slots)
                return ends, slots, suspects and slots > 0
            if self._stopping and not self._runs and not self._in_turns and not self._locked:
                self._wake.set()
                return None
            self._wake.clear()
            await self._wake.wait()

    def _few_enough(self) -> list[End]:
        """The first ends, as many as one turn can write in time."""
        size = 0
        for count, end in enumerate(self._ends):
            size += _size(end)
            if size > MOST_BYTES and count:
                break
        else:
            count = len(self._ends)
        ends, self._ends = self._ends[:count], self._ends[count:]
        return ends

    def _free_slots(self) -> int:
        """The places of runs that end with this turn are free again with it."""
        if self._stopping or self._suspects.is_alone():
            return 0
        if self._suspects.wanted():
            return 0 if self._runs or self._in_turns or self._ends else 1
        free = self._concurrency - len(self._runs) - self._in_turns - len(self._locked)
        return max(0, min(free, -(-self._concurrency // self._turns_at_once)))

    async def _turn(self, ends: list[End], slots: int, suspects: bool) -> Turn:
        try:
            return await self._storage.turn(ends, slots, suspects=suspects, fsm=self._fsm)
        except StorageRefused:
            return await self._one_by_one(ends)

    async def _one_by_one(self, ends: list[End]) -> Turn:
        """The end that the database refuses becomes a failure; the others keep what they are."""
        lost, locked, stale = set[Token](), set[Token](), set[Token]()
        for end in ends:
            try:
                turn = await self._storage.turn([end], 0)
            except StorageRefused as error:
                log.error("an end was refused, its update has failed", exc_info=error)
                turn = await self._storage.turn([Failed(end.token, "StorageRefused: its end was refused")], 0)
            lost |= turn.lost
            locked |= turn.locked
            stale |= turn.stale
        return Turn([], frozenset(lost), stale=frozenset(stale), locked=frozenset(locked))

    def _take_back(self, ends: list[End], slots: int) -> None:
        self._in_turns -= max(len(ends), slots)
        self._ends[:0] = ends
        self._look()

    def _settle(self, ends: list[End], slots: int, turn: Turn, started: float) -> None:
        self._in_turns -= max(len(ends), slots)
        if turn.locked:
            ends = self._without_locked(ends, turn.locked)
        for end in ends:
            if not isinstance(end, Uncounted):
                self._watchdog.drop(end.token)
            if isinstance(end, Later | Retried):
                self._look_in(end.after if isinstance(end, Later) else end.first)
        if turn.stale:
            metrics.stale_states.inc(len(turn.stale))
            self._look()
        metrics.given_up.inc(len(turn.given_up))
        if turn.lost:
            metrics.lost_leases.inc(len(turn.lost))
            log.warning("runs ended after their lease was lost", runs=len(turn.lost))
        queued = sum(
            len(end.outbox)
            for end in ends
            if isinstance(end, Finished) and end.outbox and end.token not in turn.lost | turn.stale
        )
        if queued:
            self._queued(turn.foremost, queued > len(turn.foremost))
        self._suspects.seen(turn.suspects)
        for lease in turn.leases:
            self._start(lease, started)
        if slots and len(turn.leases) >= slots:
            self._due = True
        self._wake.set()

    def _without_locked(self, ends: list[End], locked: frozenset[Token]) -> list[End]:
        """What is locked is shown again in a turn of its own: to find it costs the others time."""
        log.warning("ends wait: somebody else's transaction holds their lanes", ends=len(locked))
        self._locked += [end for end in ends if end.token in locked]
        self._locked_until = self._clock() + AGAIN
        self._look_in(AGAIN)
        self._look()
        return [end for end in ends if end.token not in locked]

    def _start(self, lease: Lease, since: float) -> None:
        self._watchdog.hold(lease.token, since)
        if self._stopping:
            self._ends.append(Released(lease.token))
            return
        task = asyncio.create_task(self._handle(lease))
        self._runs.add(Run(lease, task, since))
        if lease.suspect:
            self._suspects.start(lease.token)
        task.add_done_callback(lambda _: self._ended(lease.token, task))

    def _ended(self, token: Token, task: "asyncio.Task[End]") -> None:
        if (run := self._runs.pop(token, task)) is None:
            return
        self._suspects.end(token)
        self._watchdog.over(token)
        if run.cancelled == "lost":
            metrics.updates.add(run.lease.bot_id, "lost")
        else:
            self._ends.append(self._end_of(run))
        self._wake.set()

    def _end_of(self, run: Run) -> End:
        """A handler that falls over our own stop has not failed: its run is given back."""
        end = _result(run)
        if run.cancelled == "stop" and isinstance(end, Failed):
            metrics.updates.add(run.lease.bot_id, "released")
            return Released(run.lease.token)
        return end


def _size(end: End) -> int:
    if not isinstance(end, Finished):
        return 0
    return sum(map(len, end.outbox)) + sum(len(write.data or b"") for write in end.fsm)


def _result(run: Run) -> End:
    """A run that was cancelled, and not by us, has failed: it would be the same again and again."""
    if run.task.cancelled():
        return Failed(run.lease.token, "CancelledError: the handler was cancelled")
    if (error := run.task.exception()) is None:
        return run.task.result()
    log.error("a run broke", exc_info=error)
    return Failed(run.lease.token, f"{type(error).__qualname__}: the dispatcher could not run it")


def _log_failure(error: Exception, backoff: Backoff) -> None:
    """One line for an outage, one for each bug."""
    if not isinstance(error, StorageUnavailable):
        log.error("a turn broke, it is tried again", exc_info=error)
    elif backoff.fresh:
        log.warning("the database is away, runs wait to be ended", exc_info=error)


def _log_recovery(backoff: Backoff) -> None:
    if not backoff.fresh:
        log.info("the database answers again")
    backoff.reset()
