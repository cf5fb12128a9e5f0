"""The time that the handlers of one update may take."""

import asyncio

from pillarbox_dispatcher import cancels


class HandlerTimeout(TimeoutError):
    """The handlers of one update took longer than HANDLER_TIMEOUT."""


class Deadline:
    """Cancels the task that made it after `seconds`; 0 is never. As `asyncio.timeout`, at half its cost."""

    def __init__(self, seconds: float) -> None:
        self._task = asyncio.current_task()
        self._passed = False
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._pass) if seconds else None

    def _pass(self) -> None:
        self._passed = True
        if self._task is not None:
            self._task.cancel()

    def was_why(self) -> bool:
        """Whether the task is cancelled by it, and not by the dispatcher's stop; the task then goes on."""
        return self._passed and not cancels.is_ours()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._passed and self._task is not None:
            self._task.uncancel()
