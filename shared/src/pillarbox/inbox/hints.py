"""NOTIFY and LISTEN: hints that updates may have come. Lost hints cost the length of a poll, nothing else."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageError
from pillarbox.inbox import sql
from pillarbox.inbox.connections import AsyncLink, Pool, connect, deadline
from pillarbox.telemetry import get_logger

log = get_logger()

APART = 0.01
QUICK = 0.005
LAST = 1.0
PROBE_EVERY = 30.0


class Hinter:
    """Sends a hint at once, the next one `APART` seconds after it; nobody waits for it."""

    def __init__(self, pool: Pool, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._accepts = 0
        self._ended, self._took = float("-inf"), 0.0
        self._wanted = asyncio.Event()
        self._quiet = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def hint(self) -> None:
        self._quiet.clear()
        self._wanted.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send(), name="inbox hints")

    @contextmanager
    def riding(self) -> Iterator[bool]:
        """Whether the accept in this block may bring its own hint: when it is alone, and commits are quick.

        It saves the way back and forth; and commits that notify wait for each other.
        """
        began = self._clock()
        alone = not self._accepts and began - self._ended > APART and self._took < QUICK
        self._accepts += 1
        try:
            yield alone
        finally:
            self._accepts -= 1
            self._ended = self._clock()
            self._took = self._ended - began

    async def _send(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._pool.execute(sql.NOTIFY)
            except (StorageError, psycopg.Error) as error:
                log.info("a hint was not sent", reason=type(error).__name__)
            if not self._wanted.is_set():
                self._quiet.set()
            await asyncio.sleep(APART)

    async def close(self) -> None:
        """The last hint is sent first: it is of what a dispatcher leaves to others as it stops."""
        if self._task is not None and not self._task.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST):
                    await self._quiet.wait()
        await _end(self._task)


class Listener:
    """Waits for hints, on a connection that is made again when it breaks, and probed while it is silent."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, timeout: float) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="inbox listener")
        try:
            async with asyncio.timeout(timeout):
                await self._came.wait()
        except TimeoutError:
            return
        self._came.clear()

    async def _listen(self) -> None:
        backoff = Backoff()
        while True:
            try:
                async with deadline():
                    link = await connect(self._url)
                try:
                    await self._hear(link, backoff)
                finally:
                    link.pgconn.finish()
            except (StorageError, psycopg.Error, OSError) as error:
                log.info("the listener is lost", reason=type(error).__name__)
            await asyncio.sleep(backoff.delay())

    async def _hear(self, link: AsyncLink, backoff: Backoff) -> None:
        if link.pooled:
            log.warning(
                "no hints come through a pooler, each update may wait for the next poll",
                fix="set DATABASE_DIRECT_URL to the same database past the pooler",
            )
        link.add_notify_handler(lambda _: self._came.set())  # of those that come with an answer
        async with deadline():
            await link.execute(sql.LISTEN.encode())
        backoff.reset()
        self._came.set()  # also after a new start: what came meanwhile was not heard
        while True:
            await _read(link, self._came.set, PROBE_EVERY)
            async with deadline():
                await link.execute(sql.PING.encode())

    async def close(self) -> None:
        await _end(self._task)


async def _read(link: AsyncLink, heard: Callable[[], object], seconds: float) -> None:
    """For so long, `heard` is called as soon as a hint is there: without a task or a timer for each."""
    loop = asyncio.get_running_loop()
    broken: asyncio.Future[None] = loop.create_future()
    socket = link.pgconn.socket

    def read() -> None:
        try:
            link.pgconn.consume_input()
            while link.pgconn.notifies() is not None:
                heard()
        except psycopg.Error as error:
            loop.remove_reader(socket)
            if not broken.done():
                broken.set_exception(error)

    loop.add_reader(socket, read)
    try:
        async with asyncio.timeout(seconds):
            await broken
    except TimeoutError:
        return
    finally:
        loop.remove_reader(socket)


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is None:
        return
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
