"""The right to do alone what a name stands for, as far as this process can know by its own clock."""

import time
from collections.abc import Awaitable, Callable


class Hold:
    """Good for `seconds` after `since`, a reading of `clock`; each proof that it is ours prolongs it."""

    def __init__(self, seconds: float, since: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until = since + seconds

    @property
    def held(self) -> bool:
        """To be looked at before each step: a process that was paused finds out here."""
        return self._clock() < self._until

    def prolong(self, since: float) -> None:
        self._until = since + self._seconds


Work = Callable[[Hold], Awaitable[None]]
