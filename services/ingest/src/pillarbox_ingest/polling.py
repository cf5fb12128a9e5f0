"""`RECEIVE=polling`: one poller for each bot; where another process has it, this one stands by."""

import asyncio
from functools import partial

import aiohttp

from pillarbox.errors import PillarboxError
from pillarbox.ids import BotId
from pillarbox.inbox import Storage
from pillarbox_ingest.bot_api import BotApi
from pillarbox_ingest.intake import Intake
from pillarbox_ingest.poller import Poller
from pillarbox_ingest.settings import IngestSettings


class NothingComes(PillarboxError):
    """Telegram gives this process no updates, of any bot; the log says why."""


class Polling:
    def __init__(
        self, settings: IngestSettings, storage: Storage, intake: Intake, stop: asyncio.Event
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._intake = intake
        self._stop = stop
        self._pollers: list[Poller] = []
        self._ended: asyncio.Event | None = None

    async def run(self) -> None:
        """Until the stop, with what was stored confirmed, as far as Telegram could be told."""
        self._ended = asyncio.Event()
        proxy = self._settings.telegram_proxy
        async with aiohttp.ClientSession() as session:
            api = BotApi(session, self._settings.telegram_api_base, self._settings.bots, proxy)
            self._pollers = [self._poller(api, bot_id) for bot_id in self._settings.bots]
            async with asyncio.TaskGroup() as group:
                for poller in self._pollers:
                    group.create_task(poller.run())
        self._ended.set()

    def _poller(self, api: BotApi, bot_id: BotId) -> Poller:
        return Poller(
            bot_id,
            partial(api.call, bot_id),
            self._intake,
            self._storage.while_alone,
            self._stop,
            timeout=self._settings.poll_timeout,
            allowed_updates=self._settings.allowed_updates,
            delete_webhook=self._settings.delete_webhook,
        )

    async def ended(self) -> None:
        """At once where it never began."""
        if self._ended is not None:
            await self._ended.wait()

    async def check(self) -> None:
        """For readiness. One bot in trouble does not stop the others."""
        if self._pollers and all(poller.trouble is not None for poller in self._pollers):
            raise NothingComes("no updates come; the log says why")
