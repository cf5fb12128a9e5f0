"""The heartbeat: keeps the worker's name and the doors' leases, and takes over what dead workers held."""

import asyncio
from collections.abc import Sequence

from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.lanes import Lanes
from pillarbox.telemetry import get_logger
from pillarbox_sender import metrics
from pillarbox_sender.door import Door
from pillarbox_sender.outage import Outage
from pillarbox_sender.rest import rest
from pillarbox_sender.worker import BEAT_EVERY, Worker

log = get_logger()


class Beat:
    def __init__(self, worker: Worker, doors: Sequence[Door], lanes: Lanes, max_dead: int) -> None:
        self._worker, self._doors, self._lanes = worker, doors, lanes
        self._max_dead = max_dead

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`, which is set when nothing is being sent any more."""
        outage = Outage("the heartbeat was not heard", "the heartbeat is heard again")
        while not stop.is_set():
            try:
                await self._once()
            except QueueUnavailable as error:
                await rest(stop, outage.failed(error))
                continue
            outage.ended()
            await rest(stop, BEAT_EVERY)

    async def _once(self) -> None:
        before = self._worker.identity.name
        await self._worker.beat()
        if self._worker.identity.name != before:
            log.warning("the name was taken meanwhile", name=before, now=self._worker.identity.name)
        for door in self._doors:
            await door.renew()
        if self._worker.may_take_over:
            await self._take_over()

    async def _take_over(self) -> None:
        workers, again, dead = await self._lanes.scripts.call("takeover", self._max_dead)
        metrics.TAKEN_OVER.labels("again").inc(again)
        metrics.TAKEN_OVER.labels("dead").inc(dead)
        if again or dead:
            log.warning("dead workers' messages are taken over", workers=workers, again=again, dead=dead)
