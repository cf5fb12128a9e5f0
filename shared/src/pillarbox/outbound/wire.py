"""Calls to Redis over one connection, each answered in its turn: what the scripts are called by.

redis-py takes 0.2 ms more for a call where the process was idle before, and a reply waits for such calls. It
still reads the URL, and speaks where TLS is asked for.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

import hiredis
from redis import exceptions

Part = str | bytes | int | float

ERRORS: dict[str, type[exceptions.RedisError]] = {
    "LOADING": exceptions.BusyLoadingError,
    "NOAUTH": exceptions.AuthenticationError,
    "NOSCRIPT": exceptions.NoScriptError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": exceptions.ReadOnlyError,
    "WRONGPASS": exceptions.AuthenticationError,
}


class Wire:
    """Connects when it is first called, and again after it broke. `timeout`: seconds of each call.

    A call whose caller was cancelled goes on in Redis, and its answer is dropped.
    """

    def __init__(self, address: "Address", timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._connecting = asyncio.Lock()
        self._session: Session | None = None

    async def call(self, *parts: Part) -> Any:
        """Raises redis-py's errors, and OSError."""
        session = self._session
        if session is None or session.lost:
            session = await self.session()
        return await session.call(*parts)

    def close(self) -> None:
        if self._session is not None:
            self._session.end()

    async def session(self) -> "Session":
        """The connection, for calls that must not be made on a later one."""
        async with asyncio.timeout(self._timeout), self._connecting:
            if self._session is None or self._session.lost:
                self._session = await self._connect()
            return self._session

    async def _connect(self) -> "Session":
        session = await self._address.connect(self._timeout)
        try:
            for parts in self._address.greetings:
                await session.call(*parts)
        except BaseException:
            session.end()
            raise
        return session


class Address:
    """Where Redis is, and what it wants to hear first, by what redis-py made of the URL."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._path: str | None = options.get("path")
        self._host, self._port = options.get("host", "localhost"), int(options.get("port", 6379))
        self.greetings: list[tuple[Part, ...]] = []
        if options.get("password"):
            user = (options["username"],) if options.get("username") else ()
            self.greetings.append(("AUTH", *user, options["password"]))
        if options.get("db"):
            self.greetings.append(("SELECT", options["db"]))

    async def connect(self, timeout: float) -> "Session":
        loop = asyncio.get_running_loop()
        session = Session(timeout)
        if self._path is not None:
            await loop.create_unix_connection(lambda: session, self._path)
        else:
            await loop.create_connection(lambda: session, self._host, self._port)
        return session


class Session(asyncio.Protocol):
    """Answers come in the order of the calls."""

    def __init__(self, timeout: float) -> None:
        self.lost = False
        self._timeout = timeout
        self._reader = hiredis.Reader(replyError=_error)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._transport: asyncio.Transport | None = None

    async def call(self, *parts: Part) -> Any:
        """Raises redis-py's errors; ConnectionError where the connection is lost."""
        if self._transport is None or self.lost:
            raise exceptions.ConnectionError("the connection is lost")
        loop = asyncio.get_running_loop()
        packed = hiredis.pack_command(parts)  # type: ignore[arg-type]  # its stub knows tuples of one
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(answer)  # only what is sent: each answer is for who waits the longest
        self._transport.write(packed)
        late = loop.call_later(self._timeout, self._late, answer)
        try:
            reply = await answer
        finally:
            late.cancel()
        if isinstance(reply, exceptions.RedisError):
            raise reply
        return reply

    def end(self) -> None:
        self.lost = True
        if self._transport is not None:
            self._transport.abort()

    def _late(self, answer: "asyncio.Future[Any]") -> None:
        if not answer.done():
            answer.set_exception(exceptions.TimeoutError("no answer in time"))
        self.end()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                if not self._waiting:  # as where Redis has clients enough
                    self.end()
                    return
                answer = self._waiting.popleft()
                if not answer.done():
                    answer.set_result(reply)
        except hiredis.ProtocolError:
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        while self._waiting:
            if not (answer := self._waiting.popleft()).done():
                answer.set_exception(exceptions.ConnectionError("the connection was lost"))


def _error(text: str) -> exceptions.RedisError:
    return ERRORS.get(text.partition(" ")[0], exceptions.ResponseError)(text)
