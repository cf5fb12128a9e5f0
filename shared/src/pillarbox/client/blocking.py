"""The client for code without asyncio: no event loop and no thread, so it works inside a running loop too.

What is asked is written once, as coroutines. Here they are given ports that block and never wait for a loop,
so that each one runs to its end at once.
"""

import threading
from collections.abc import Coroutine, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from pillarbox.client.blocking_messages import BlockingMessages
from pillarbox.client.operations import Operations, account, looked_for, which
from pillarbox.client.source import Address, Mark, Source
from pillarbox.errors import AccessRefused
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin, Progress

T = TypeVar("T")


class SyncClient(BlockingMessages):
    """`Client` with the same words, blocking. Threads may share it: one call runs at a time."""

    def __init__(
        self, where: str | Path, *, bot_id: int, token: str | None = None, by: str | None = None
    ) -> None:
        self._operations = Operations(_source(Address.of(where), token, by or account()), bot_id)
        self._guard = threading.Lock()

    def failed_updates(
        self,
        update_ids: Iterable[int] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: str | None = None,
        chat_id: int | None = None,
        error: str | None = None,
    ) -> Iterator[FailedUpdate]:
        """From the newest failure to the oldest, fetched page by page."""
        return self._each(looked_for(update_ids, Filter(since, until, kind, chat_id, error)))

    def _each(self, matching: Filter) -> Iterator[FailedUpdate]:
        mark: Mark = None
        while True:
            page, mark = self._done(self._operations.page(matching, mark))
            yield from page
            if mark is None:
                return

    def retry_failed(
        self,
        update_ids: Iterable[int] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: str | None = None,
        chat_id: int | None = None,
        error: str | None = None,
        progress: Progress | None = None,
    ) -> Moved:
        """Back in the queue, at the ends of their lanes: these, those that match, or all of the bot."""
        chosen = which(update_ids, Filter(since, until, kind, chat_id, error))
        return self._done(self._operations.requeue(chosen, progress))

    def discard_failed(
        self,
        update_ids: Iterable[int] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: str | None = None,
        chat_id: int | None = None,
        error: str | None = None,
        progress: Progress | None = None,
    ) -> Moved:
        """Forgotten for good; chosen as by `retry_failed`."""
        chosen = which(update_ids, Filter(since, until, kind, chat_id, error))
        return self._done(self._operations.discard(chosen, progress))

    def pin(self, user_id: int) -> Pin | None:
        """The key that is trusted for this person."""
        return self._done(self._operations.pinned(user_id))

    def trust_key(self, user_id: int, fingerprint: str) -> Pin:
        """In the place of whichever key was pinned. Raises FingerprintRefused."""
        return self._done(self._operations.trust(user_id, fingerprint))

    def forget_key(self, user_id: int) -> Pin | None:
        """The next key that is seen will be pinned. The pin that is gone; None where none was."""
        return self._done(self._operations.forget(user_id))

    def close(self) -> None:
        with self._guard:
            _finished(self._operations.close())

    def __enter__(self) -> Self:
        with self._guard:
            _finished(self._operations.ready())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _done(self, asked: Coroutine[Any, Any, T]) -> T:
        with self._guard:
            try:
                _finished(self._operations.ready())
            except BaseException:
                asked.close()
                raise
            return _finished(asked)


def _finished(asked: Coroutine[Any, Any, T]) -> T:
    """What it returns. Nothing in it may wait for a loop."""
    try:
        asked.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    asked.close()
    raise RuntimeError("a blocking port waited for an event loop")


def _source(address: Address, token: str | None, by: str) -> Source:
    if address.kind == "http":
        from pillarbox.client.ports import BlockingTransport
        from pillarbox.client.rest import RestSource

        if token is None:
            raise AccessRefused("admin wants a token; give one of its ADMIN_TOKENS as token=…")
        return RestSource(BlockingTransport(address.value, token))
    if address.kind == "redis":
        from pillarbox.client.messages import QueueSource, settings_of
        from pillarbox.client.queue_port import BlockingScripts

        settings = settings_of(address.value)
        scripts = BlockingScripts(settings)
        return QueueSource(scripts, settings.reader, by, scripts.close)
    from pillarbox.client import database
    from pillarbox.client.ports import BlockingFile, BlockingLink

    if address.kind == "postgresql":
        link = BlockingLink(address.value)
        return database.PostgresSource(link, link.close, by)
    from pillarbox.inbox.sqlite.files import path_of

    return database.SQLiteSource(BlockingFile(path_of(address.value)), by)
