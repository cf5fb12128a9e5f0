"""How a handler asks for its update again."""

from datetime import timedelta

from aiogram.dispatcher.event.bases import CancelHandler


class RetryUpdate(CancelHandler):
    """This update again in `after` seconds; its lane waits, and what the run put into the outbox is dropped.

    No errors observer sees it. An update that is still not handled a day after it was accepted has failed.
    """

    def __init__(self, after: float | timedelta = 1.0) -> None:
        self.after = after.total_seconds() if isinstance(after, timedelta) else float(after)
        if not self.after >= 0:
            raise ValueError("after: seconds from now, 0 or more")
        super().__init__(f"this update again in {self.after:g} s")


class StateUnavailable(RetryUpdate):
    """FSM state cannot be read now: nobody's fault, so the update waits instead of failing."""
