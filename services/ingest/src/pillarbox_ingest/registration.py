"""Tells Telegram where our webhook is (Bot API, setWebhook); the same parameters again change nothing."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
from pydantic import SecretStr

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.telemetry import get_logger
from pillarbox_ingest import metrics
from pillarbox_ingest.settings import IngestSettings

log = get_logger()

TryLock = Callable[[str], AbstractAsyncContextManager[bool]]

TIMEOUT = aiohttp.ClientTimeout(total=30)
SLOWEST = 15.0
LOCK = "setWebhook"


class Refused(Exception):
    """Passing: Telegram, or what stands between, said no. The text is Telegram's description or a status."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class Unauthorized(Exception):
    """Final: there is no bot with this token."""


class Registration:
    """One bot after the other; one that Telegram does not know leaves the others alone."""

    def __init__(self, settings: IngestSettings, try_lock: TryLock) -> None:
        self._settings = settings
        self._try_lock = try_lock
        proxy = settings.telegram_proxy
        self._proxy = proxy.get_secret_value() if proxy else None

    async def run(self) -> None:
        """Returns when each bot's webhook is registered or refused for good."""
        if self._settings.webhook_url is None:
            log.info("the webhook is not registered", reason="WEBHOOK_URL is not set")
            return
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session, asyncio.TaskGroup() as group:
            for bot_id, token in self._settings.bots.items():
                metrics.WEBHOOK.labels(bot_id).set(0)
                group.create_task(self._register(session, bot_id, token), name=f"webhook of {bot_id}")

    async def _register(self, session: aiohttp.ClientSession, bot_id: BotId, token: SecretStr) -> None:
        backoff, told = Backoff(first=0.5, most=SLOWEST), ""
        while True:
            try:
                if await self._alone(session, bot_id, token):
                    return
                reason, after = "another process registers it", 0.0
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

    async def _alone(self, session: aiohttp.ClientSession, bot_id: BotId, token: SecretStr) -> bool:
        """False while another process is at it: two at once would get a 409 each."""
        async with self._try_lock(f"{LOCK}:{bot_id}") as ours:
            if not ours:
                return False
            await self._call(session, bot_id, token)
        metrics.WEBHOOK.labels(bot_id).set(1)
        log.info("the webhook is registered", bot=bot_id)
        return True

    async def _call(self, session: aiohttp.ClientSession, bot_id: BotId, token: SecretStr) -> None:
        address = f"{self._settings.telegram_api_base.rstrip('/')}/bot{token.get_secret_value()}/setWebhook"
        try:
            async with session.post(address, json=self._parameters(bot_id), proxy=self._proxy) as answer:
                status, body = answer.status, await _json(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Its text may hold the address, and that the token.
            raise Refused(type(error).__name__) from None
        if status == 401:
            raise Unauthorized
        if status != 200 or body.get("ok") is not True:
            after = body.get("parameters", {}).get("retry_after", 0)
            raise Refused(str(body.get("description") or f"HTTP {status}"), float(after))

    def _parameters(self, bot_id: BotId) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "url": f"{self._settings.webhook_url}/webhook/{bot_id}",
            "secret_token": self._settings.secrets[0],
            "max_connections": self._settings.webhook_max_connections,
        }
        if self._settings.allowed_updates is not None:
            parameters["allowed_updates"] = self._settings.allowed_updates
        return parameters


async def _json(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    try:
        body = await answer.json(content_type=None)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
