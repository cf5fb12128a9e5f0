"""When a suspect's turn comes: it runs alone, so that it can take no other update down with it.

The other lanes run out first, as long as there is patience, and afterwards get as much time as that took. One
that runs for `patience` and has not ended its process by then is slow, not deadly: the others start again
beside it.
"""

from collections.abc import Callable

from pillarbox.ids import Token

PAUSE = 0.02


class Suspects:
    """`again` is given the seconds after which it is worth asking once more."""

    def __init__(self, clock: Callable[[], float], patience: float, again: Callable[[float], None]) -> None:
        self._again = again
        self._clock = clock
        self._patience = patience
        self._alone = patience
        self._waiting = False
        self._not_before = clock()
        self._since: float | None = None
        self._running: Token | None = None
        self._started = clock()

    def is_running(self) -> bool:
        return self._running is not None

    def is_alone(self) -> bool:
        """Nothing may start beside the one that runs."""
        return self.is_running() and self._clock() < self._started + self._alone

    def seen(self, waiting: bool) -> None:
        """What the last turn saw in the inbox."""
        self._waiting = waiting
        if not waiting and not self.is_running():
            self._since = None

    def wanted(self) -> bool:
        """Nothing new may start now; once nothing runs, a suspect is claimed."""
        now = self._clock()
        if not self._waiting or self.is_running() or now < self._not_before:
            return False
        if self._since is None:
            self._since = now
        if now - self._since > self._patience:
            self._patience *= 2
            self._yield(now)
        return self._since is not None

    def start(self, token: Token) -> None:
        self._running, self._started = token, self._clock()
        self._again(self._alone)

    def asked(self) -> None:
        """A turn is over that might have claimed one."""
        if not self.is_running():
            self._yield(self._clock())

    def end(self, token: Token) -> None:
        if token == self._running:
            self._running = None
            self._yield(min(self._clock(), self._started + self._alone))

    def _yield(self, free: float) -> None:
        """`free`: since when the others may start again."""
        pause = max(PAUSE, free - (free if self._since is None else self._since))
        self._not_before, self._since = free + pause, None
        self._again(max(PAUSE, self._not_before - self._clock()))
