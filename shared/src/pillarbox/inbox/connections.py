"""Connections to PostgreSQL: each call has a deadline, and what was cut in the middle is thrown away."""

import asyncio
import select
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor, waiting
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus

from pillarbox.errors import (
    SettingError,
    StorageLocked,
    StorageRefused,
    StorageUnavailable,
)
from pillarbox.inbox import arrays
from pillarbox.inbox.asking import Asking, Row

RV = TypeVar("RV")

DEADLINE = 5.0
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# SQLSTATE classes. Class 25 is what a read-only standby and an idle transaction's timeout answer.
LOCKED = "55P03"
DATA = ("22", "23", "54")
PASSING = ("08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX")

_adapters = AdaptersMap(psycopg.adapters)
arrays.register(_adapters)


def translated(error: psycopg.Error) -> Exception:
    """Passing, data, or the error itself: a bug. The text holds no data."""
    state = error.sqlstate or ""
    what = f"{type(error).__name__} {state}".strip()
    if state.startswith(DATA):
        return StorageRefused(f"the database refused the data ({what})")
    if state == LOCKED:
        return StorageLocked(f"another transaction holds a row ({what})")
    if state.startswith(PASSING) or (
        not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    ):
        return StorageUnavailable(f"the database is away or cannot serve ({what})")
    return error


class AsyncLink(AsyncConnection[Row]):
    """Cancelled in the middle of a query, it is closed at once: a stuck server answers no plea."""

    pooled = False
    """Whether a pooler such as PgBouncer stands between: it tells another pid than the server does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asking = Asking(self)

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class Link(Connection[Row]):
    """Blocking; a query that takes longer than DEADLINE raises, and the connection is closed."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, DEADLINE if timeout is None else timeout)
        except BaseException:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


async def connect(url: str, **options: Any) -> AsyncLink:
    """`options` are libpq's own. Behind a pooler nothing is prepared: each call may meet another server."""
    try:
        link = await AsyncLink.connect(
            url,
            autocommit=True,
            context=_adapters,
            cursor_factory=AsyncRawCursor,
            application_name="pillarbox",
            client_encoding="utf8",
            **KEEPALIVE,
            **options,
        )
    except asyncio.CancelledError as cancelled:
        # The frames hold what was half connected, and the server would wait for the rest of it.
        raise cancelled.with_traceback(None) from None
    try:
        cursor = await link.execute(b"SELECT pg_backend_pid()", prepare=False)
        ((served_by,),) = await cursor.fetchall()
    except BaseException:
        link.pgconn.finish()
        raise
    if served_by != link.pgconn.backend_pid:
        link.pooled = True
        link.prepare_threshold = None
    return link


async def connect_directly(url: str, **options: Any) -> AsyncLink:
    """For a session's own locks: a pooler would give them to somebody else, or keep them for ever."""
    try:
        link = await connect(url, **options)
    except psycopg.OperationalError as error:
        if "startup parameter" not in str(error):
            raise
        raise _pooler() from None
    if link.pooled:
        link.pgconn.finish()
        raise _pooler()
    return link


def _pooler() -> SettingError:
    return SettingError(
        "DATABASE_DIRECT_URL: this is a pooler, not PostgreSQL itself, and locks need that;"
        " set it to the database's own address"
    )


def connect_blocking(url: str) -> Link:
    return Link.connect(
        url,
        autocommit=True,
        context=_adapters,
        cursor_factory=RawCursor,
        application_name="pillarbox",
        connect_timeout=int(DEADLINE),
        **KEEPALIVE,
    )


@asynccontextmanager
async def deadline(seconds: float = DEADLINE) -> AsyncIterator[None]:
    """Past it, StorageUnavailable; psycopg's errors come out as ours."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        took = time.monotonic() - started
        raise StorageUnavailable(f"the database did not answer within {took:.1f} s") from None
    except psycopg.Error as error:
        if (ours := translated(error)) is error:
            raise
        raise ours from error


class Executes(Protocol):
    """What the statements of people need of a database."""

    async def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """One autocommit statement and its rows."""


class Pool:
    """Up to `size` connections, made when needed. One that failed in a call is not used again."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._room = asyncio.Semaphore(size)
        self._idle: list[AsyncLink] = []
        self._closed = False

    async def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """One autocommit statement and its rows, within DEADLINE."""
        async with deadline(), self.session() as link:
            return await link.asking.ask(query, parameters)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncLink]:
        """A connection for several statements, made within DEADLINE. What the caller awaits then has none."""
        async with self._room:
            link = await self._take()
            try:
                yield link
            finally:
                self._put(link)

    async def _take(self) -> AsyncLink:
        while self._idle:
            link = self._idle.pop()
            if not link.closed and not spoken_to(link):
                return link
            link.pgconn.finish()
        async with deadline():  # its own: whoever waits for Redis in a session has none around it
            return await connect(self._url)

    def _put(self, link: AsyncLink) -> None:
        if self._closed or link.pgconn.transaction_status != TransactionStatus.IDLE:
            link.pgconn.finish()
        else:
            self._idle.append(link)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()


def spoken_to(link: AsyncLink | Link) -> bool:
    """An idle connection with something to read was ended by the server, as in a restart."""
    poll = select.poll()
    poll.register(link.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))
