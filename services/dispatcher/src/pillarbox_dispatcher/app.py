"""The dispatcher, put together."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any

from pillarbox import process
from pillarbox.errors import QueueUnavailable, StorageUnavailable
from pillarbox.inbox import OutboxRow
from pillarbox.inbox.opening import Inbox, opening, shared_storage_of
from pillarbox.outbound.connection import connect
from pillarbox.outbound.lanes import Lanes as Outbound
from pillarbox.telemetry import Check, Probes, bind, get_logger, serve_on
from pillarbox_dispatcher import answers, bots, handlers, mistakes, passing, state
from pillarbox_dispatcher.early import Early
from pillarbox_dispatcher.lanes import Lanes
from pillarbox_dispatcher.relay import Relay
from pillarbox_dispatcher.runs import Runs
from pillarbox_dispatcher.settings import DispatcherSettings
from pillarbox_dispatcher.station import Station
from pillarbox_dispatcher.unread import leave_out_unread
from pillarbox_dispatcher.watchdog import EXIT_BLOCKED, Watchdog

FLUSH = 2.0
UNWILLING = 10.0

log = get_logger()


class Service:
    """Its parts, and the order in which they start and stop. `station`: what stands before the storage."""

    def __init__(self, settings: DispatcherSettings, inbox: Inbox, station: Station | None = None) -> None:
        module = handlers.module(settings.handlers)
        self._settings = settings
        self._inbox = inbox
        storage: Station = station or inbox.storage
        self._redis = connect(settings)
        self._http = bots.session(settings)
        if settings.answers == "outbox":
            self._http.middleware(answers.QueuedAnswers())
        self._bots = bots.bots(settings, self._http, handlers.bot_defaults(module))
        self._states = state.StateStorage(storage, state.patience(settings.handler_timeout))
        self._dispatcher = handlers.dispatcher(module, self._states)
        self._watchdog = Watchdog(storage.renewer, lease=settings.lease, limit=settings.handler_timeout)
        outbound = self._outbound()
        self._relay = Relay(storage, outbound)
        self._early = Early(outbound, self._relay.filed)
        self._lanes = Lanes(
            storage,
            Runs(
                self._dispatcher,
                self._bots,
                timeout=settings.handler_timeout,
                max_message=settings.max_message,
                passing=self._passing(),
            ).handle,
            self._watchdog,
            concurrency=settings.concurrency,
            patience=settings.lease,
            longest=settings.handler_timeout and settings.handler_timeout + UNWILLING,
            queued=self._queued,
        )
        self._started = False
        self._reads_state = True

    def _passing(self) -> passing.Passing:
        given = self._settings
        types = passing.types(given.retry_on)
        return passing.Passing(types, given.retry_first, given.retry_most, given.retry_times)

    def _outbound(self) -> Outbound:
        return Outbound(
            self._redis,
            self._settings.redis_messages_key,
            max_dead=self._settings.max_dead,
            max_message=self._settings.max_message,
        )

    def _queued(self, foremost: Sequence[OutboxRow], others: bool) -> None:
        if others or not self._early.take(foremost):
            self._relay.ring()

    def probes(self) -> Probes:
        return Probes({"database": self._inbox.check, **self.checks})

    @property
    def unwilling(self) -> int:
        """Handlers that still run after `run`, and would keep the loop from ending."""
        return self._lanes.unwilling

    @property
    def checks(self) -> Mapping[str, Check]:
        return {"redis": self._ping_redis, "handlers": self._has_started}

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then what runs may end, what ended is written, and what is written is relayed."""
        try:
            if await _unless_stopped(self._start(), stop):
                await self._work(stop)
        finally:
            await self._close()

    async def _start(self) -> None:
        await self._inbox.opened()
        await bots.start(self._dispatcher, self._bots, asyncio.sleep)
        self._reads_state = not leave_out_unread(self._dispatcher)
        mistakes.watch(self._dispatcher)
        self._started = True
        process.freeze()
        log.info(
            "dispatcher handles updates",
            bots=len(self._bots),
            handlers=self._settings.handlers,
            reads_state=self._reads_state,
        )

    async def _work(self, stop: asyncio.Event) -> None:
        async with (
            _background(self._watchdog.run(self._lanes.lost)),
            _background(self._relay.run()),
            _background(self._early.run()),
        ):
            await self._lanes.run(stop, self._settings.stop_timeout, fsm=self._reads_state)
        await self._relay_the_last()

    async def _relay_the_last(self) -> None:
        """What cannot be relayed now is relayed by another dispatcher, or by the next start."""
        try:
            async with asyncio.timeout(FLUSH):
                await self._relay.drain()
        except (StorageUnavailable, QueueUnavailable, TimeoutError) as error:
            log.warning("the outbox keeps what is left in it", exc_info=error)

    async def _close(self) -> None:
        if self._started:
            await bots.stop(self._dispatcher, self._bots)
        await self._http.close()
        await self._redis.aclose()

    async def _ping_redis(self) -> None:
        await self._redis.ping()

    async def _has_started(self) -> None:
        if not self._started:
            raise NotStarted


class NotStarted(Exception):
    """The handlers' startup hooks have not run yet."""


async def main(settings: DispatcherSettings, stop: asyncio.Event) -> None:
    storage = shared_storage_of(settings)
    with bind(settings.dispatcher_host, settings.dispatcher_port, "DISPATCHER_PORT") as listener:
        async with opening(storage, list(settings.bots)) as inbox:
            service = Service(settings, inbox)
            await _dispatch(listener, service, stop)
    leave(service)


def leave(service: Service) -> None:
    """The last step of a process: handlers that do not end would keep its loop from ending."""
    if service.unwilling:
        log.error("ending the process with handlers in it that do not end", handlers=service.unwilling)
        os._exit(EXIT_BLOCKED)


async def _dispatch(listener: socket.socket, service: Service, stop: asyncio.Event) -> None:
    ended = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve_on(listener, service.probes(), ended))
        try:
            await service.run(stop)
        finally:
            ended.set()


async def _unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Whether `work` ended; it is cut when `stop` comes first."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
    if not working.done():
        await asyncio.wait({working})
        return False
    working.result()
    return True


@contextlib.asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs beside the block and is ended with it; its crash ends the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        yield
        task.cancel()
