"""The time that the handlers of one update may take."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from pillarbox_dispatcher import cancels


class HandlerTimeout(TimeoutError):
    """The handlers of one update took longer than HANDLER_TIMEOUT."""


class Deadlines:
    """Each cancels its task `seconds` after it was set; 0 is never.

    All of them share one timer, as who is set first passes first: a timer for each is a tenth of what
    aiogram needs for an update.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: dict[Deadline, float] = {}
        self._is_timed = False

    def set(self, task: "asyncio.Task[Any]") -> "Deadline":
        deadline = Deadline(task, self._until)
        if self._seconds:
            self._until[deadline] = self._clock() + self._seconds
            if not self._is_timed:
                self._time(self._seconds)
        return deadline

    def _time(self, seconds: float) -> None:
        self._is_timed = True
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._is_timed = False
        now = self._clock()
        while self._until:
            first = next(iter(self._until))
            if (left := self._until[first] - now) > 0:
                self._time(left)
                break
            first.pass_by()


class Deadline:
    """Of one run. As `asyncio.timeout`, at a fraction of its cost."""

    __slots__ = ("_passed", "_task", "_until")

    def __init__(self, task: "asyncio.Task[Any]", until: dict["Deadline", float]) -> None:
        self._task = task
        self._until = until
        self._passed = False

    def pass_by(self) -> None:
        del self._until[self]
        self._passed = True
        self._task.cancel()

    def was_why(self) -> bool:
        """Whether the task is cancelled by it, and not by the dispatcher's stop; the task then goes on."""
        return self._passed and not cancels.is_ours(self._task)

    def end(self) -> None:
        self._until.pop(self, None)
        if self._passed:
            self._task.uncancel()
