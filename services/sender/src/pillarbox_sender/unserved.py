"""Bots whose messages wait for a worker that has their token: said, since nothing else tells of it."""

from collections.abc import Callable

from pillarbox.outbound.depths import Depths
from pillarbox.telemetry import get_logger
from pillarbox_sender import metrics

log = get_logger()

SAY_EVERY = 600.0


class Unserved:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}

    def look(self, found: Depths) -> None:
        """One line a bot, and again every 10 minutes."""
        for bot, depths in found.bots.items():
            unserved = depths.paused == "unserved"
            metrics.UNSERVED.labels(bot).set(unserved)
            if not unserved:
                self._said.pop(bot, None)
            elif self._clock() - self._said.get(bot, float("-inf")) >= SAY_EVERY:
                self._said[bot] = self._clock()
                waiting = sum(depths.waiting.values()) + depths.delayed
                log.warning(
                    "messages wait for a bot that no sender has the token of",
                    bot=int(bot),
                    waiting=waiting,
                    fix="add its token to BOT_TOKENS of a sender",
                )
