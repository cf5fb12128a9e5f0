"""Builds the sender and runs it until it is told to stop."""

import asyncio
import socket
import time
from collections.abc import Callable
from functools import partial

from redis.asyncio import Redis

from pillarbox import process
from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.connection import Client, connect, passing
from pillarbox.outbound.depths import depths
from pillarbox.outbound.durability import risks
from pillarbox.outbound.files import Files
from pillarbox.outbound.keys import Keys
from pillarbox.outbound.lanes import Lanes
from pillarbox.telemetry import Probes, bind, get_logger, serve_on
from pillarbox_sender import metrics
from pillarbox_sender.beat import Beat
from pillarbox_sender.bell import Bell
from pillarbox_sender.bot_api import BotApi
from pillarbox_sender.door import Door
from pillarbox_sender.outage import Outage
from pillarbox_sender.rest import rest, unless
from pillarbox_sender.sender import Sender
from pillarbox_sender.settings import SenderSettings
from pillarbox_sender.turn import Turns
from pillarbox_sender.unserved import Unserved
from pillarbox_sender.worker import Worker

log = get_logger()

SHOW_EVERY = 5.0
TO_RECORD = 3.0
"""Seconds of STOP_TIMEOUT that are left for the ends of what was cut; and then for the doors and the beat."""
TO_LEAVE = 2.0


async def main(settings: SenderSettings, stop: asyncio.Event) -> None:
    for advice in settings.advice():
        log.warning(advice.text, id=advice.id, hint=advice.hint)
    with bind(settings.sender_host, settings.sender_port, "SENDER_PORT") as listener:
        await _send(settings, listener, stop)


async def _send(settings: SenderSettings, listener: socket.socket, stop: asyncio.Event) -> None:
    redis = connect(settings)
    probes = Probes({"redis": partial(_ping, redis)})
    ended = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(serve_on(listener, probes, ended))
            try:
                await deliver(settings, redis, stop)
            finally:
                ended.set()
    finally:
        await redis.aclose()


async def deliver(settings: SenderSettings, redis: "Redis", stop: asyncio.Event) -> None:
    """Until `stop`, and until what was being sent then has ended."""
    lanes = Lanes(redis, settings.redis_messages_key, max_dead=settings.max_dead, reader=settings.reader)
    worker = Worker(lanes, settings.name, time.monotonic, settings.bots, settings.call_limits)
    await unless(stop, _enter(redis, worker, stop))
    async with _api(settings, Files(redis, settings.redis_messages_key)) as api:
        process.freeze()
        if not stop.is_set():
            await _Station(settings, redis, lanes, worker, api).run(stop)


def _api(settings: SenderSettings, files: Files) -> BotApi:
    return BotApi(
        settings.telegram_api_base,
        settings.bots,
        timeout=settings.send_timeout,
        concurrency=settings.send_concurrency,
        proxy=settings.telegram_proxy,
        files=files,
        upload_timeout=settings.upload_timeout,
    )


async def _enter(redis: "Redis", worker: Worker, stop: asyncio.Event) -> None:
    """Waits for Redis as long as it takes."""
    outage = Outage("waiting for the queue", "the queue is there")
    while not stop.is_set():
        try:
            for risk in await risks(redis):
                log.warning(risk.text, id=risk.id, hint=risk.hint)
            await worker.enter()
        except QueueUnavailable as error:
            await rest(stop, outage.failed(error))
        else:
            outage.ended()
            log.info("sending", worker=worker.identity.name)
            return


class _Station:
    """All that runs between start and stop, each as a task of one group."""

    def __init__(
        self, settings: SenderSettings, redis: "Redis", lanes: Lanes, worker: Worker, api: BotApi
    ) -> None:
        self._settings, self._redis, self._worker = settings, redis, worker
        bots = list(settings.bots)
        blocking = partial(connect, settings, blocking=True)
        keys = Keys(settings.redis_messages_key)
        self._bell = Bell(
            redis,
            blocking,
            lambda: keys.hand(worker.identity.incarnation),
            [keys.bell(bot) for bot in bots],
            settings.block,
        )
        self._sender = Sender(
            Turns(lanes, bots, settings.max_dead),
            worker,
            api,
            self._bell,
            slots=settings.send_concurrency,
            max_retries=settings.max_retries,
            clock=time.monotonic,
        )
        self._doors = [self._door(key, lanes, blocking) for key in keys.doors]
        self._beat = Beat(worker, self._doors, lanes, settings.max_dead)

    def _door(self, key: str, lanes: Lanes, blocking: Callable[[], Client]) -> Door:
        bots = list(self._settings.bots)
        return Door(
            key,
            self._redis,
            blocking,
            lanes,
            self._worker,
            bulk=key != self._settings.redis_messages_key,
            bot=bots[0] if len(bots) == 1 else None,
            block=self._settings.block,
            filed=self._sender.wake,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """What is cut off at STOP_TIMEOUT stays in its list or claim, and is taken over from there."""
        try:
            async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
                group.create_task(self._end_pops(stop, limit))
                await self._work(stop, group)
                _end_in(limit, TO_RECORD)
        except TimeoutError:
            log.warning("the stop was cut off: Redis does not answer")
        await self._leave()

    async def _work(self, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        ended = asyncio.Event()
        group.create_task(self._beat.run(ended))
        group.create_task(self._show(ended))
        group.create_task(self._bell.run(stop, self._sender))
        for door in self._doors:
            group.create_task(door.run(stop))
        await self._sender.run(stop, self._grace())
        ended.set()

    def _grace(self) -> float:
        stop_timeout = self._settings.stop_timeout
        return stop_timeout - min(TO_RECORD, stop_timeout / 5)

    async def _end_pops(self, stop: asyncio.Event, limit: asyncio.Timeout) -> None:
        await stop.wait()
        _end_in(limit, self._settings.stop_timeout)
        await self._bell.end()
        for door in self._doors:
            await door.end()

    async def _show(self, stop: asyncio.Event) -> None:
        unserved = Unserved(time.monotonic)
        while not stop.is_set():
            try:
                found = await depths(self._redis, self._settings.redis_messages_key)
                metrics.show(found)
                unserved.look(found)
            except QueueUnavailable as error:
                log.debug("the depths are not known", error=str(error))
            await rest(stop, SHOW_EVERY)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(TO_LEAVE):
                await self._worker.leave()
        except (QueueUnavailable, TimeoutError) as error:
            log.warning("the heartbeat is left to lapse", error=str(error) or "no answer")
        log.info("stopped", worker=self._worker.identity.name)


def _end_in(limit: asyncio.Timeout, seconds: float) -> None:
    """In `seconds`, unless it ends before."""
    when = asyncio.get_running_loop().time() + seconds
    limit.reschedule(when if limit.when() is None else min(when, limit.when() or when))


async def _ping(redis: "Redis") -> None:
    with passing():
        await redis.ping()
