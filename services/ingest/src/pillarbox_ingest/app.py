"""Ingest, put together: webhook, buffer, registration and upkeep around one inbox."""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from pillarbox import process
from pillarbox.inbox.opening import Inbox, opening, shared_storage_of
from pillarbox.telemetry import Check, Probes, bind, get_logger, serve_on
from pillarbox_ingest.buffer import Buffer
from pillarbox_ingest.intake import Batches, Intake, OneByOne
from pillarbox_ingest.parsing import parse
from pillarbox_ingest.polling import Polling
from pillarbox_ingest.registration import Registration
from pillarbox_ingest.settings import IngestSettings
from pillarbox_ingest.upkeep import keep_swept
from pillarbox_ingest.webhook import PREFIX, Put, Webhook

log = get_logger()

Confirm = Callable[[Put], Put]
"""Around the accepting of an update: when Telegram may be told. A durable storage needs none."""


class Ingest:
    """The ASGI app: updates to the webhook, everything else to the probes."""

    def __init__(
        self,
        settings: IngestSettings,
        inbox: Inbox,
        stop: asyncio.Event,
        *,
        confirm: Confirm = lambda put: put,
        checks: Mapping[str, Check] = MappingProxyType({}),
    ) -> None:
        self._inbox = inbox
        self._stop = stop
        self.buffer = Buffer(inbox.storage.accept, time.monotonic)
        self._parse = partial(parse, lane_by=settings.lane_by)
        self._put = confirm(self.buffer.put)
        self._webhook: Webhook | None = None
        self._polling: Polling | None = None
        if settings.receive == "polling":
            self._polling = Polling(settings, inbox.storage, self._intake(), stop)
            checks = {"polling": self._polling.check, **checks}
        else:
            self._registration = Registration(settings, inbox.storage.alone)
            self._webhook = self._hook(settings)
        self._probes = Probes({"database": inbox.check, **checks})

    def _intake(self) -> Intake:
        storage = self._inbox.storage
        if storage.durable:
            return Batches(storage, self._parse)
        return OneByOne(self._put, storage.malformed, self._parse, self._stop.is_set)

    def _hook(self, settings: IngestSettings) -> Webhook:
        keep = self._inbox.storage.malformed
        return Webhook(settings.bots, settings.secrets, self._parse, self._put, keep, self._serving)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._webhook is not None and scope["type"] == "http" and scope["path"].startswith(PREFIX):
            await self._webhook(scope, receive, send)
        else:
            await self._probes(scope, receive, send)

    def _serving(self) -> bool:
        return self._inbox.is_open and not self._stop.is_set()

    async def begin(self) -> None:
        """What needs the inbox, once that is open."""
        await self._inbox.opened()
        process.freeze()
        async with asyncio.TaskGroup() as group:
            if self._polling is not None:
                group.create_task(self._polling.run(), name="polling")
            else:
                group.create_task(self._registration.run(), name="registration")
            group.create_task(keep_swept(self._inbox.storage), name="sweep")

    async def stopping(self) -> None:
        """Until the stop, and then no longer for who is slow to send."""
        await self._stop.wait()
        if self._webhook is not None:
            self._webhook.stop()

    async def polled(self) -> None:
        """After the stop: what was stored is confirmed."""
        if self._polling is not None:
            await self._polling.ended()


async def main(settings: IngestSettings, stop: asyncio.Event) -> None:
    storage = shared_storage_of(settings)
    with listening(settings) as listener:
        async with opening(storage, list(settings.bots)) as inbox:
            await receive(settings, Ingest(settings, inbox, stop), listener, stop)


def listening(settings: IngestSettings) -> socket.socket:
    """Before anything is begun, so that a port which is taken ends the start at once: SettingError."""
    return bind(settings.ingest_host, settings.ingest_port, "INGEST_PORT")


async def receive(
    settings: IngestSettings, ingest: Ingest, listener: socket.socket, stop: asyncio.Event
) -> None:
    """Until `stop`, and until every request that is here by then has its answer."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ingest.buffer.run(), name="buffer"),
            group.create_task(ingest.begin(), name="inbox"),
            group.create_task(ingest.stopping(), name="stop"),
        ]
        log.info("started", receive=settings.receive, port=settings.ingest_port, bots=len(settings.bots))
        await serve_on(listener, ingest, stop)
        await ingest.polled()
        # Every request has its answer now, so nothing waits in the buffer.
        for task in tasks:
            task.cancel()
    log.info("stopped")
