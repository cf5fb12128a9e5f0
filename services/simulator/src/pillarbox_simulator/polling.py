"""getUpdates: what was not taken yet, and a wait for the next (Bot API, "Getting updates")."""

import asyncio
from contextlib import suppress

from pillarbox_simulator.answers import Answer, Refused
from pillarbox_simulator.bots import Bot
from pillarbox_simulator.call import Call
from pillarbox_simulator.updates import Pending

LONGEST = 50
FAR = 10
"""An offset further than this beyond the last id starts at the head again (telegram-bot-api, Client.cpp)."""

WEBHOOK_ACTIVE = (
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
OTHER_CALLER = "terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_SET = "terminated by setWebhook request"


class Polling:
    """One long poll for a bot; a new caller ends the one before."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def get_updates(self, call: Call) -> Answer:
        bot = call.bot
        if bot.registration.url:
            raise Refused(409, f"Conflict: {WEBHOOK_ACTIVE}")
        self.end(bot, OTHER_CALLER)
        allowed = call.params.get("allowed_updates")
        if isinstance(allowed, list):
            bot.registration.allowed_updates = [str(kind) for kind in allowed]
        limit = _between(call, "limit", 100, 1, 100)
        self._take(bot, _between(call, "offset", 0, -(2**31), 2**31))
        timeout = _between(call, "timeout", 0, 0, LONGEST)
        if not bot.updates.pending and timeout and not self._stopping.is_set():
            await self._arrival(bot, timeout)
        return Answer(200, b'{"ok":true,"result":[' + b",".join(bot.updates.head(limit)) + b"]}")

    def _take(self, bot: Bot, offset: int) -> None:
        if offset < 0:
            bot.updates.keep_last(-offset)
        elif offset <= bot.updates.next_id + FAR:
            bot.updates.confirm(offset)
        bot.updates.expire()

    async def _arrival(self, bot: Bot, timeout: float) -> None:
        arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def arrived(_: Pending) -> None:
            if not arrival.done():
                arrival.set_result(None)

        self._waiting[bot.id], bot.updates.arrived = arrival, arrived
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await arrival
        finally:
            if self._waiting.get(bot.id) is arrival:
                del self._waiting[bot.id]

    def end(self, bot: Bot, why: str) -> None:
        """Whoever waits now is answered 409."""
        waiting = self._waiting.pop(bot.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_exception(Refused(409, f"Conflict: {why}"))

    def end_all(self) -> None:
        """At the end of the process: whoever waits is answered with what there is."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)


def _between(call: Call, name: str, default: int, least: int, most: int) -> int:
    if call.params.get(name) is None:
        return default
    return max(least, min(most, call.number(name)))
