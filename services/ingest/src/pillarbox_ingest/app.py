"""Ingest, put together: webhook, buffer, registration and upkeep around one inbox."""

import asyncio
import time
from typing import Any

from pillarbox import process
from pillarbox.backoff import Backoff
from pillarbox.errors import StorageUnavailable
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.telemetry import Probes, get_logger, serve
from pillarbox_ingest.buffer import Buffer
from pillarbox_ingest.registration import Registration
from pillarbox_ingest.settings import IngestSettings
from pillarbox_ingest.upkeep import keep_swept
from pillarbox_ingest.webhook import PREFIX, Webhook

log = get_logger()


class Ingest:
    """The ASGI app: updates to the webhook, everything else to the probes."""

    def __init__(self, settings: IngestSettings, storage: PostgresStorage, stop: asyncio.Event) -> None:
        self._storage = storage
        self._opened = False
        self._stop = stop
        self.buffer = Buffer(storage.accept, time.monotonic)
        self._registration = Registration(settings, storage.alone)
        self._probes = Probes({"database": self._check})
        self._webhook = Webhook(
            settings.bots, settings.secrets, self.buffer.put, storage.malformed, self._serving
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            await self._webhook(scope, receive, send)
        else:
            await self._probes(scope, receive, send)

    def _serving(self) -> bool:
        return self._opened and not self._stop.is_set()

    async def _check(self) -> None:
        if not self._opened:
            raise StorageUnavailable("the database was not there yet")
        await self._storage.ping()

    async def begin(self) -> None:
        """Opens the inbox, however long its database is away; then what needs it."""
        await self._open()
        process.freeze()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._registration.run(), name="registration")
            group.create_task(keep_swept(self._storage), name="sweep")

    async def _open(self) -> None:
        backoff, told = Backoff(), False
        while not self._opened:
            try:
                await self._storage.open()
            except StorageUnavailable as error:
                if not told:
                    log.warning("the database is away", reason=str(error))
                    told = True
                await asyncio.sleep(backoff.delay())
            else:
                self._opened = True


async def main(settings: IngestSettings, stop: asyncio.Event) -> None:
    storage = PostgresStorage(settings)
    ingest = Ingest(settings, storage, stop)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(ingest.buffer.run(), name="buffer"),
                group.create_task(ingest.begin(), name="inbox"),
            ]
            log.info("started", port=settings.ingest_port, bots=len(settings.bots))
            await serve(ingest, settings.ingest_host, settings.ingest_port, stop, setting="INGEST_PORT")
            # Every request has its answer now, so nothing waits in the buffer.
            for task in tasks:
                task.cancel()
    finally:
        await storage.close()
    log.info("stopped")
