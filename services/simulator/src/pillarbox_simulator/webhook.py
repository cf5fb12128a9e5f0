"""setWebhook, deleteWebhook, getWebhookInfo, and who delivers for which bot."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from pillarbox.settings import SECRET
from pillarbox_simulator.answers import Answer, bad_request, ok
from pillarbox_simulator.bots import Bot, Bots, Registration, Troubles
from pillarbox_simulator.call import Call
from pillarbox_simulator.clock import Clock
from pillarbox_simulator.delivery import Delivery, Execute
from pillarbox_simulator.polling import WEBHOOK_SET, Polling

MOST_CONNECTIONS = 100
LONGEST_SECRET = 256


class Webhooks:
    """Owns one delivery for each bot that has a webhook, while `running`."""

    def __init__(self, bots: Bots, polling: Polling, clock: Clock, execute: Execute) -> None:
        self._bots = bots
        self._polling = polling
        self._clock = clock
        self._execute = execute
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=75)
        timeout = aiohttp.ClientTimeout(total=None)
        session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        async with session as self._session, asyncio.TaskGroup() as self._group:
            for bot in self._bots:
                self._start(bot)
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks.values():
                    task.cancel()

    def _start(self, bot: Bot) -> None:
        if bot.registration.url and self._group is not None and self._session is not None:
            chance = random.Random(bot.id)  # noqa: S311 - jitter, no secret
            delivery = Delivery(bot, self._session, self._clock, self._execute, chance)
            self._tasks[bot.id] = self._group.create_task(delivery.run())

    async def _stop(self, bot: Bot) -> None:
        task = self._tasks.pop(bot.id, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def set_webhook(self, call: Call) -> Answer:
        bot, url = call.bot, str(call.params.get("url") or "")
        if not url:
            return await self.delete_webhook(call)
        registration = _registration(call, url)
        if call.params.get("drop_pending_updates"):
            bot.updates.clear()
        same = _without_kinds(registration) == _without_kinds(bot.registration)
        if same:
            bot.registration.allowed_updates = registration.allowed_updates
        else:
            self._polling.end(bot, WEBHOOK_SET)
            await self.register(bot, registration)
        self._keep(bot)
        return _done("Webhook is already set" if same else "Webhook was set")

    async def delete_webhook(self, call: Call) -> Answer:
        bot = call.bot
        if call.params.get("drop_pending_updates"):
            bot.updates.clear()
        was_set = bool(bot.registration.url)
        await self.register(bot, Registration(allowed_updates=bot.registration.allowed_updates))
        self._keep(bot)
        return _done("Webhook was deleted" if was_set else "Webhook is already deleted")

    async def register(self, bot: Bot, registration: Registration) -> None:
        """From now on the bot's updates go there, beginning with those that wait."""
        await self._stop(bot)
        bot.registration, bot.troubles = registration, Troubles()
        self._start(bot)

    async def forget(self, bot: Bot) -> None:
        """As if the bot had never called setWebhook."""
        await self.register(bot, Registration())
        self._keep(bot)

    def _keep(self, bot: Bot) -> None:
        bot.updates.changes.publish("webhook", bot.id, asdict(bot.registration))

    async def get_webhook_info(self, call: Call) -> Answer:
        return ok(info(call.bot))


def info(bot: Bot) -> dict[str, Any]:
    """What getWebhookInfo answers."""
    registration = bot.registration
    shown: dict[str, Any] = {
        "url": registration.url,
        "has_custom_certificate": False,
        "pending_update_count": len(bot.updates.pending),
    }
    if registration.url:
        shown["max_connections"] = registration.max_connections
    if registration.allowed_updates:
        shown["allowed_updates"] = registration.allowed_updates
    if bot.troubles.date is not None:
        shown |= {"last_error_date": bot.troubles.date, "last_error_message": bot.troubles.message}
    return shown


def _registration(call: Call, url: str) -> Registration:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise bad_request("bad webhook: invalid URL")
    secret = str(call.params.get("secret_token") or "")
    if len(secret) > LONGEST_SECRET:
        raise bad_request("secret token is too long")
    if secret and not SECRET.match(secret):
        raise bad_request("secret token contains unallowed characters")
    connections = call.number("max_connections") if call.params.get("max_connections") else 40
    allowed = call.params.get("allowed_updates")
    if allowed is None:  # omitted: the setting before is kept (Bot API, setWebhook)
        allowed = call.bot.registration.allowed_updates
    if not isinstance(allowed, list):
        raise bad_request("can't parse allowed updates JSON object")
    return Registration(
        url, secret, max(1, min(MOST_CONNECTIONS, connections)), [str(kind) for kind in allowed]
    )


def _without_kinds(registration: Registration) -> tuple[str, str, int]:
    return registration.url, registration.secret_token, registration.max_connections


def _done(description: str) -> Answer:
    body = b'{"ok":true,"result":true,"description":"' + description.encode() + b'"}'
    return Answer(200, body)
