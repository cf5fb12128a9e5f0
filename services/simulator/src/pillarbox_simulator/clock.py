"""Telegram's sense of time: how fast its retries and expiries run, so that tests see a day in minutes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """`scale` 100 makes a wait of 60 s last 0.6 s. The answer deadline of a webhook is real time."""

    scale: float = 1.0
    deadline: float = 60.0
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def real(self, seconds: float) -> float:
        """How long `seconds` of Telegram's last here."""
        return seconds / self.scale
