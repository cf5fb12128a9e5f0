"""SQLite's thread. What came while it wrote one transaction goes into the next one, and waits no longer."""

import asyncio
import queue
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pillarbox.errors import StorageUnavailable
from pillarbox.inbox.sqlite.connection import connect, transaction, translated

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

DEADLINE = 5.0
MOST = 500


class Calls(Protocol):
    """What the functions for people need of a database."""

    async def call(self, work: Work[T]) -> T:
        """`work` in a transaction."""


class _Call(Generic[T]):
    """Work that waits for the thread, and where its answer goes: to a loop, or to a blocked thread."""

    __slots__ = ("answer", "error", "loop", "value", "work")

    def __init__(
        self,
        work: Work[T],
        answer: "asyncio.Future[T] | futures.Future[T]",
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.work = work
        self.answer = answer
        self.loop = loop
        self.value: T | None = None
        self.error: Exception | None = None

    def settle(self) -> None:
        if self.answer.done():
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.value)  # type: ignore[arg-type]


Asked = queue.SimpleQueue[_Call[Any] | None]


class Driver:
    """One connection and the thread that it belongs to."""

    def __init__(self, path: Path, connect: Callable[[Path], sqlite3.Connection] = connect) -> None:
        self._path = path
        self._connect = connect
        self._calls: Asked = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._cut: threading.Thread | None = None

    async def start(self) -> None:
        """Raises what `connect` raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        ready = _Call(lambda _: None, answer, loop)
        self._calls = queue.SimpleQueue()
        arguments = (self._calls, ready, self._cut)
        self._thread = threading.Thread(target=self._serve, args=arguments, name="sqlite", daemon=True)
        self._thread.start()
        try:
            await asyncio.shield(answer)
        except BaseException:
            self._cut, self._thread = self._thread, None
            self._calls.put(None)  # it may still be opening, for nobody
            raise

    async def call(self, work: Work[T]) -> T:
        """`work` in a transaction. Past DEADLINE StorageUnavailable; `work` may still be done then."""
        self._check_started()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.put(_Call(work, answer, loop))
        try:
            async with asyncio.timeout(DEADLINE):
                return await answer
        except TimeoutError:
            raise StorageUnavailable(f"the database did not answer within {DEADLINE:g} s") from None

    def call_blocking(self, work: Work[T]) -> T:
        """The same for another thread than the loop's."""
        self._check_started()
        answer: futures.Future[T] = futures.Future()
        self._calls.put(_Call(work, answer, None))
        try:
            return answer.result(DEADLINE)
        except futures.TimeoutError:
            raise StorageUnavailable(f"the database did not answer within {DEADLINE:g} s") from None

    def _check_started(self) -> None:
        if self._thread is None:
            raise StorageUnavailable("the database is not open")

    async def stop(self) -> None:
        """What was asked before is done first."""
        if self._thread is None:
            return
        thread, self._thread = self._thread, None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        self._calls.put(_Call(lambda _: None, answer, loop))
        self._calls.put(None)
        await answer
        thread.join()

    # the thread

    def _serve(self, asked: Asked, ready: _Call[None], cut: threading.Thread | None) -> None:
        if cut is not None:
            cut.join()  # two that open one new file at a time are in each other's way
        try:
            db = self._connect(self._path)
        except Exception as error:  # whatever it is, the caller of `start` is told
            ready.error = error
            _deliver([ready])
            return
        _deliver([ready])
        try:
            while calls := _waiting(asked):
                _run(db, calls)
                _deliver(calls)
        finally:
            db.close()


def _waiting(asked: Asked) -> list[_Call[Any]]:
    """All that wait, at least one; none when the thread has to end."""
    calls: list[_Call[Any]] = []
    call = asked.get()
    while call is not None:
        calls.append(call)
        if len(calls) == MOST or asked.empty():
            return calls
        call = asked.get()
    if calls:
        asked.put(None)
    return calls


def _run(db: sqlite3.Connection, calls: Sequence[_Call[Any]]) -> None:
    """Together; when that fails, each one alone, so that a bad one costs the others nothing."""
    calls = [call for call in calls if not call.answer.cancelled()]
    if len(calls) > 1 and _together(db, calls):
        return
    for call in calls:
        call.error = None
        try:
            with transaction(db):
                call.value = call.work(db)
        except Exception as error:  # it belongs to the caller
            call.error = translated(error)


def _together(db: sqlite3.Connection, calls: Sequence[_Call[Any]]) -> bool:
    """Whether it is settled: done, or impossible for all of them."""
    began = False
    try:
        with transaction(db):
            began = True
            for call in calls:
                call.value = call.work(db)
    except Exception as error:  # each call shows by itself whether it is its own
        if began:
            return False
        for call in calls:
            call.error = translated(error)
    return True


def _deliver(calls: Sequence[_Call[Any]]) -> None:
    """One wake-up a loop, however many answers there are."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Call[Any]]] = defaultdict(list)
    for call in calls:
        if call.loop is None:
            call.settle()
        else:
            by_loop[call.loop].append(call)
    for loop, answered in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, answered)
        except RuntimeError:
            continue  # the loop is closed: nobody waits for these any more


def _settle(calls: Sequence[_Call[Any]]) -> None:
    for call in calls:
        call.settle()
