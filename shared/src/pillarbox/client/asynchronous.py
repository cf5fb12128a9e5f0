"""The client for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pillarbox.client.async_messages import AsyncMessages
from pillarbox.client.operations import Operations, account, looked_for, which
from pillarbox.client.source import Address, Mark, Source
from pillarbox.errors import AccessRefused
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin, Progress

NextPage = Callable[[Mark], Awaitable[tuple[list[FailedUpdate], Mark]]]


class FailedUpdates:
    """`async for` fetches page by page; `await` gives all of them as a list."""

    def __init__(self, next_page: NextPage) -> None:
        self._next_page = next_page

    async def __aiter__(self) -> AsyncIterator[FailedUpdate]:
        mark: Mark = None
        while True:
            page, mark = await self._next_page(mark)
            for failed in page:
                yield failed
            if mark is None:
                return

    def __await__(self) -> Generator[Any, None, list[FailedUpdate]]:
        return self._all().__await__()

    async def _all(self) -> list[FailedUpdate]:
        return [failed async for failed in self]


class Client(AsyncMessages):
    """One bot of a deployment.

    `where`: `http(s)://…`, admin of a running deployment, with a token of its ADMIN_TOKENS; `postgresql://…`,
    the inbox itself; `redis://…`, the queue itself, for messages alone, with REDIS_MESSAGES_KEY and the like
    from the environment; or the SQLite file of `pillarbox run`, also while it runs. `by` is whom the audit
    names where it is not admin, which knows the token's name.

    Connects with the first call; `async with` or `close` ends it. Every call raises StorageUnavailable where
    it may be repeated; AccessRefused, UnknownBot and SettingError say what has to be changed.
    """

    def __init__(
        self, where: str | Path, *, bot_id: int, token: str | None = None, by: str | None = None
    ) -> None:
        self._operations = Operations(_source(Address.of(where), token, by or account()), bot_id)
        self._guard = asyncio.Lock()

    def failed_updates(
        self,
        update_ids: Iterable[int] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: str | None = None,
        chat_id: int | None = None,
        error: str | None = None,
    ) -> FailedUpdates:
        """From the newest failure to the oldest; `error` is the error's type, the times are aware."""
        matching = looked_for(update_ids, Filter(since, until, kind, chat_id, error))

        async def next_page(mark: Mark) -> tuple[list[FailedUpdate], Mark]:
            return await (await self._ready()).page(matching, mark)

        return FailedUpdates(next_page)

    async def retry_failed(
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
        """Back in the queue, at the ends of their lanes: these, those that match, or all of the bot.

        Says how many moved, and which ids were unknown (not on the failed list) or are waiting or running.
        """
        chosen = which(update_ids, Filter(since, until, kind, chat_id, error))
        return await (await self._ready()).requeue(chosen, progress)

    async def discard_failed(
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
        """Forgotten for good; chosen and answered as by `retry_failed`."""
        chosen = which(update_ids, Filter(since, until, kind, chat_id, error))
        return await (await self._ready()).discard(chosen, progress)

    async def pin(self, user_id: int) -> Pin | None:
        """The key that is trusted for this person."""
        return await (await self._ready()).pinned(user_id)

    async def trust_key(self, user_id: int, fingerprint: str) -> Pin:
        """In the place of whichever key was pinned. Raises FingerprintRefused."""
        return await (await self._ready()).trust(user_id, fingerprint)

    async def forget_key(self, user_id: int) -> Pin | None:
        """The next key that is seen will be pinned. The pin that is gone; None where none was."""
        return await (await self._ready()).forget(user_id)

    async def close(self) -> None:
        await self._operations.close()

    async def __aenter__(self) -> Self:
        try:
            await self._ready()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ready(self) -> Operations:
        async with self._guard:
            await self._operations.ready()
        return self._operations


def _source(address: Address, token: str | None, by: str) -> Source:
    if address.kind == "http":
        from pillarbox.client.http import AiohttpTransport
        from pillarbox.client.rest import RestSource

        if token is None:
            raise AccessRefused("admin wants a token; give one of its ADMIN_TOKENS as token=…")
        return RestSource(AiohttpTransport(address.value, token))
    if address.kind == "redis":
        from pillarbox.client.messages import QueueSource, settings_of
        from pillarbox.outbound.connection import connect
        from pillarbox.outbound.scripts import Scripts

        settings = settings_of(address.value)
        redis = connect(settings)
        return QueueSource(Scripts(redis, settings.redis_messages_key), settings.reader, by, redis.aclose)
    from pillarbox.client import database

    if address.kind == "postgresql":
        from pillarbox.inbox.connections import Pool

        pool = Pool(address.value, 2)
        return database.PostgresSource(pool, pool.close, by)
    from pillarbox.inbox.sqlite.connection import attach
    from pillarbox.inbox.sqlite.driver import Driver
    from pillarbox.inbox.sqlite.files import path_of

    return database.SQLiteSource(Driver(path_of(address.value), attach), by)
