"""Tells Telegram where our webhook is (Bot API, setWebhook); the same parameters again change nothing."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.telemetry import get_logger
from pillarbox_ingest import metrics
from pillarbox_ingest.bot_api import BotApi, Refused, Unauthorized
from pillarbox_ingest.poller import LOCK as POLLING
from pillarbox_ingest.settings import IngestSettings

log = get_logger()

TryLock = Callable[[str], AbstractAsyncContextManager[bool]]

SLOWEST = 15.0
LOCK = "setWebhook"


class Registration:
    """One bot after the other; one that Telegram does not know leaves the others alone."""

    def __init__(self, settings: IngestSettings, try_lock: TryLock) -> None:
        self._settings = settings
        self._try_lock = try_lock

    async def run(self) -> None:
        """Returns when each bot's webhook is registered or refused for good."""
        if self._settings.webhook_url is None:
            log.info("the webhook is not registered", reason="WEBHOOK_URL is not set")
            return
        settings = self._settings
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            api = BotApi(session, settings.telegram_api_base, settings.bots, settings.telegram_proxy)
            for bot_id in settings.bots:
                metrics.WEBHOOK.labels(bot_id).set(0)
                group.create_task(self._register(api, bot_id), name=f"webhook of {bot_id}")

    async def _register(self, api: BotApi, bot_id: BotId) -> None:
        backoff, told = Backoff(first=0.5, most=SLOWEST), ""
        while True:
            try:
                reason, after = await self._alone(api, bot_id), 0.0
                if not reason:
                    return
            except Unauthorized:
                log.error(
                    "Telegram knows no bot with this token", bot=bot_id, fix="check its token in BOT_TOKENS"
                )
                return
            except Refused as error:
                reason, after = error.reason, error.after
            except StorageUnavailable:
                reason, after = "the database is away", 0.0
            if reason != told:
                log.warning("the webhook is not registered yet", bot=bot_id, reason=reason)
                told = reason
            await asyncio.sleep(max(backoff.delay(), after))

    async def _alone(self, api: BotApi, bot_id: BotId) -> str:
        """Why not, for now: two at once would get a 409 each, and a poller must not lose its bot unasked."""
        async with self._try_lock(f"{LOCK}:{bot_id}") as ours:
            if not ours:
                return "another process registers it"
            async with self._try_lock(f"{POLLING}:{bot_id}") as unpolled:
                if not unpolled:
                    return "another process asks for its updates (RECEIVE=polling)"
                await api.call(bot_id, "setWebhook", self._parameters(bot_id))
        metrics.WEBHOOK.labels(bot_id).set(1)
        log.info("the webhook is registered", bot=bot_id)
        return ""

    def _parameters(self, bot_id: BotId) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "url": f"{self._settings.webhook_url}/webhook/{bot_id}",
            "secret_token": self._settings.secrets[0],
            "max_connections": self._settings.webhook_max_connections,
        }
        if self._settings.allowed_updates is not None:
            parameters["allowed_updates"] = self._settings.allowed_updates
        return parameters
