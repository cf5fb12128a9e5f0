"""Keeps leases while the event loop is busy or blocked: one thread, with a connection of its own.

The loop shows that it lives by a beat. When the beat stays out, the thread goes on renewing, names the line
that blocks, and past the limit ends the process: a supervisor starts it again, and the leases run out.
"""

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable

from pillarbox.errors import LeasesLocked, StorageUnavailable
from pillarbox.ids import Token
from pillarbox.inbox import Renewer
from pillarbox.telemetry import get_logger
from pillarbox_dispatcher.failures import running_in

EXIT_BLOCKED = 3
MARGIN = 1 / 6

log = get_logger()
Lost = Callable[[frozenset[Token]], None]


def _die() -> None:
    os._exit(EXIT_BLOCKED)


class Watchdog:
    """Renews every held lease each third of its time.

    A loop that is blocked for `limit` seconds ends the process; 0 is never.
    """

    def __init__(
        self,
        renewer: Callable[[], Renewer],
        *,
        lease: float,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
        die: Callable[[], None] = _die,
    ) -> None:
        self._connect = renewer
        self._lost: Lost = lambda _: None
        self._lease = lease
        self._limit = limit
        self._clock = clock
        self._die = die
        self._tick = min(lease / 12, 1.0)
        self._until: dict[Token, float] = {}
        self._over: set[Token] = set()
        self._guard = threading.Lock()
        self._stopped = threading.Event()
        self._beats = 0
        self._thread: threading.Thread | None = None

    def hold(self, token: Token, since: float) -> None:
        """From now on it is renewed. `since`: this clock's time before the database was asked for it."""
        with self._guard:
            self._until[token] = since + self._lease

    def over(self, token: Token) -> None:
        """Its run has ended, and only its end is to be written: it is renewed still, and nobody is told."""
        with self._guard:
            if token in self._until:
                self._over.add(token)

    def drop(self, token: Token) -> None:
        with self._guard:
            self._until.pop(token, None)
            self._over.discard(token)

    async def run(self, lost: Lost) -> None:
        """Until it is cancelled. `lost` is told which leases another has, or were not renewed in time."""
        self._lost = lost
        loop, loop_thread = asyncio.get_running_loop(), threading.get_ident()
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,  # what names the service in each line
            args=(self._watch, loop, loop_thread),
            name="leases",
            daemon=True,
        )
        self._thread.start()
        try:
            while True:
                self._beats += 1
                self._expire()
                await asyncio.sleep(self._tick)
        finally:
            self._stopped.set()
            self._thread.join(timeout=self._tick)

    def _expire(self) -> None:
        ends = self._clock() + self._lease * MARGIN
        with self._guard:
            expired = frozenset(token for token, until in self._until.items() if until <= ends)
        self._forget(expired, "not renewed in time")

    def _forget(self, tokens: frozenset[Token], why: str) -> None:
        with self._guard:
            held = frozenset(token for token in tokens if self._until.pop(token, None) is not None)
            held, self._over = held - self._over, self._over - held
        if held:
            log.warning("leases lost", leases=len(held), reason=why)
            self._lost(held)

    def _watch(self, loop: asyncio.AbstractEventLoop, loop_thread: int) -> None:
        """The thread. SIGSTOP counts as no more than two ticks of blocking: the process was not running."""
        renewals = _Renewals(self._connect, self._lease / 3, self._clock)
        seen, blocked, last, told = self._beats, 0.0, self._clock(), False
        while not self._stopped.wait(self._tick):
            now = self._clock()
            blocked = 0.0 if self._beats != seen else blocked + min(now - last, 2 * self._tick)
            seen, last, told = self._beats, now, told and blocked > 0
            if blocked > self._lease / 2 and not told:
                told = True
                log.warning(
                    "the event loop is blocked", seconds=round(blocked, 1), at=running_in(loop_thread)
                )
            if self._limit and blocked > self._limit:
                log.error("the event loop stays blocked: ending the process", at=running_in(loop_thread))
                self._die()
            self._renew(renewals, loop)
        renewals.close()

    def _renew(self, renewals: "_Renewals", loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            tokens = list(self._until)
        asked = self._clock()
        lost = renewals.renew(tokens)
        if lost is None:
            return
        kept = set(tokens) - lost - renewals.locked
        with self._guard:
            self._until.update({token: asked + self._lease for token in kept if token in self._until})
        if lost and not self._stopped.is_set():
            loop.call_soon_threadsafe(self._forget, lost, "another dispatcher has them")


class _Renewals:
    """The renewer's connection, and when it is time: each `every` seconds, after a failure at each call."""

    def __init__(self, connect: Callable[[], Renewer], every: float, clock: Callable[[], float]) -> None:
        self._connect = connect
        self._every = every
        self._clock = clock
        self._renewer: Renewer | None = None
        self._next = clock() + every
        self._failing = False
        self.locked: frozenset[Token] = frozenset()

    def renew(self, tokens: list[Token]) -> frozenset[Token] | None:
        """The lost ones; None when nothing was asked or nothing is known. Of `locked`, too, nothing is."""
        asked = self._clock()
        if asked < self._next:
            return None
        self.locked = frozenset()
        try:
            self._renewer = self._renewer or self._connect()
            lost = self._renewer.renew(tokens) if tokens else frozenset()
        except LeasesLocked as error:
            self._failed(error)
            self.locked = error.locked
            return error.lost
        except StorageUnavailable as error:
            self._failed(error)
            return None
        except Exception as error:  # a bug here must not end the thread that keeps every lease
            self._failed(error)
            return None
        if self._failing:
            log.info("leases are renewed again")
        self._failing, self._next = False, asked + self._every
        return lost

    def _failed(self, error: Exception) -> None:
        if not self._failing:
            log.warning("leases cannot be renewed", exc_info=error)
        self._failing = True

    def close(self) -> None:
        if self._renewer is not None:
            self._renewer.close()
