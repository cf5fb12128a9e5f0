"""Messages of updates that just finished go into the lanes of chats from memory, ahead of the relay."""

import asyncio
from collections.abc import Callable, Sequence

from pillarbox.errors import QueueUnavailable
from pillarbox.inbox import OutboxRow
from pillarbox.telemetry import get_logger
from pillarbox_dispatcher.relay import Lanes, file

log = get_logger()

MOST_BYTES = 8 << 20


class Early:
    """Each is tried once: what is not filed here stays in the outbox as it was, and so does what is.

    The relay takes it from there; the queue knows by its id what it has. `filed` is told what is there.
    """

    def __init__(self, lanes: Lanes, filed: Callable[[Sequence[OutboxRow]], None]) -> None:
        self._lanes = lanes
        self._filed = filed
        self._rows: list[OutboxRow] = []
        self._bytes = 0
        self._came = asyncio.Event()

    def take(self, rows: Sequence[OutboxRow]) -> bool:
        """`rows`: the foremost of their lanes, in order. False: so much waits that the relay is as quick."""
        size = sum(len(row.body) for row in rows)
        if self._bytes + size > MOST_BYTES:
            return False
        self._rows += rows
        self._bytes += size
        self._came.set()
        return True

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            rows, self._rows, self._bytes = self._rows, [], 0
            try:
                await file(self._lanes, rows)
            except QueueUnavailable as error:
                log.debug("the relay has to file them", rows=len(rows), error=str(error))
                self._filed([])
            except Exception as error:  # a bug here must not stop what other rows need
                log.error("filing early broke, the relay has to do it", exc_info=error)
                self._filed([])
            else:
                self._filed(rows)
