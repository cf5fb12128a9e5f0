"""`pillarbox run`: all services in one process, around one storage."""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import SecretStr

import pillarbox_admin.app
import pillarbox_ingest.app
from pillarbox.inbox.opening import Inbox, storage_of
from pillarbox.outbound.connection import connect
from pillarbox.telemetry import get_logger
from pillarbox_admin.app import administer
from pillarbox_dispatcher.app import Service, leave
from pillarbox_ingest.app import Ingest, receive
from pillarbox_sender.app import deliver
from pillarbox_solo.confirming import Confirming
from pillarbox_solo.queue import Queue
from pillarbox_solo.settings import RunSettings

log = get_logger()


async def main(settings: RunSettings, stop: asyncio.Event) -> None:
    """Until `stop`. Raises SettingError, PollingConflictError and LauncherError before anything is taken."""
    storage = storage_of(settings)
    inbox = Inbox(storage)
    service = None
    try:
        if await _opened(inbox, settings, stop):
            with _listening(settings) as listeners:
                async with _queue(settings) as ready:
                    service = await _serve(ready, inbox, listeners, stop)
    finally:
        await storage.close()
    log.info("stopped")
    if service is not None:
        leave(service)


async def _opened(inbox: Inbox, settings: RunSettings, stop: asyncio.Event) -> bool:
    """False: `stop` came first."""
    opening = asyncio.ensure_future(inbox.open(list(settings.bots)))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (opening, stopping):
        task.cancel()
    await asyncio.wait({opening, stopping})
    if opening.cancelled():
        return False
    opening.result()
    return True


@dataclass(frozen=True)
class Listeners:
    ingest: socket.socket
    admin: socket.socket | None


@contextmanager
def _listening(settings: RunSettings) -> Iterator[Listeners]:
    """Before the queue and the handlers are started: SettingError for a port that is taken."""
    with ExitStack() as stack:
        ingest = stack.enter_context(pillarbox_ingest.app.listening(settings))
        admin = None
        if settings.admin_tokens:
            admin = stack.enter_context(pillarbox_admin.app.listening(settings))
        yield Listeners(ingest, admin)


@asynccontextmanager
async def _queue(settings: RunSettings) -> AsyncIterator[RunSettings]:
    """The settings with a REDIS_URL, behind which a Redis runs: ours, unless another one was named."""
    if not settings.own_valkey:
        yield settings
        return
    queue = Queue(settings.folder_of_valkey, settings.valkey_port, settings.valkey_bin)
    try:
        url = queue.start()
        log.info("the queue is up", redis_url=url)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(queue.watch(), name="Valkey")
            yield settings.model_copy(update={"redis_url": SecretStr(url)})
            watching.cancel()
    finally:
        queue.stop()


async def _serve(settings: RunSettings, inbox: Inbox, listeners: Listeners, stop: asyncio.Event) -> Service:
    confirming = None if inbox.storage.durable else Confirming(inbox.storage)
    service = Service(settings, inbox, confirming)
    ingest = _ingest(settings, inbox, stop, service, confirming)
    redis = connect(settings)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_as("ingest", receive(settings, ingest, listeners.ingest, stop)))
            group.create_task(_as("dispatcher", _dispatch(service, confirming, stop)))
            group.create_task(_as("sender", deliver(settings, redis, stop)))
            if listeners.admin is not None:
                administering = administer(settings, inbox, listeners.admin, stop, list(settings.bots))
                group.create_task(_as("admin", administering))
            log.info("running", storage=type(inbox.storage).__name__, admin=bool(settings.admin_tokens))
    finally:
        await redis.aclose()
    return service


def _ingest(
    settings: RunSettings,
    inbox: Inbox,
    stop: asyncio.Event,
    service: Service,
    confirming: Confirming | None,
) -> Ingest:
    """Its probes are those of the whole process."""
    if confirming is None:
        return Ingest(settings, inbox, stop, checks=service.checks)
    return Ingest(settings, inbox, stop, checks=service.checks, confirm=confirming.confirm)


async def _dispatch(service: Service, confirming: Confirming | None, stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        refusing = group.create_task(_refuse(confirming, stop))
        try:
            await service.run(stop)
        finally:
            refusing.cancel()
            if confirming is not None:
                confirming.close()


async def _refuse(confirming: Confirming | None, stop: asyncio.Event) -> None:
    await stop.wait()
    if confirming is not None:
        confirming.refuse()


async def _as(service: str, work: Coroutine[Any, Any, None]) -> None:
    """The service's name is in its log lines, as where it is a process of its own."""
    structlog.contextvars.bind_contextvars(service=service)
    await work
