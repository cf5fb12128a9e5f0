"""Which runs the dispatcher itself has cancelled: for a stop, a lost lease or a timeout that did not help.

Any other cancellation is its handler's own doing, or a helper's, and fails the update.
"""

import asyncio
from typing import Any
from weakref import WeakSet

_ours: "WeakSet[asyncio.Task[Any]]" = WeakSet()


def cancel(run: "asyncio.Task[Any]") -> None:
    _ours.add(run)
    run.cancel()


def is_ours(run: "asyncio.Task[Any]") -> bool:
    """Whether it was cancelled here."""
    return run in _ours


async def let_through() -> None:
    """A task that has cancelled itself, and did not wait since, is cancelled by this."""
    await asyncio.sleep(0)
