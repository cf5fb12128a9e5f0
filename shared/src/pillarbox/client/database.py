"""Sources that are the inbox's database itself: PostgreSQL, and a SQLite file, also of a running bot."""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from pillarbox.client.source import PAGE, Mark, last_of
from pillarbox.db.version import check_revision
from pillarbox.ids import BotId
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin, Progress, Which, failures, pinning, reading, sql
from pillarbox.inbox.connections import Executes
from pillarbox.inbox.fingerprints import fingerprint_of
from pillarbox.inbox.sqlite import failures as sqlite_failures
from pillarbox.inbox.sqlite import pinning as sqlite_pinning
from pillarbox.inbox.sqlite import reading as sqlite_reading
from pillarbox.inbox.sqlite.driver import Calls
from pillarbox.inbox.sqlite.times import micros

Ends = Callable[[], Awaitable[None]]


class PostgresSource:
    """`by`: whom the audit names."""

    def __init__(self, pool: Executes, end: Ends, by: str) -> None:
        self._pool = pool
        self._end = end
        self._by = by

    async def open(self) -> None:
        ((*_, migrated),) = await self._pool.execute(sql.CHECK)
        revision = await self._pool.execute(sql.REVISION) if migrated else []
        check_revision(revision[0][0] if revision else None)

    async def close(self) -> None:
        await self._end()

    async def knows(self, bot_id: BotId) -> bool:
        return await reading.knows(self._pool, bot_id)

    async def page(self, bot_id: BotId, matching: Filter, mark: Mark) -> tuple[list[FailedUpdate], Mark]:
        page = await reading.failed_updates(self._pool, bot_id, mark, PAGE, matching)
        return page, last_of(page)

    async def requeue(self, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        moved = await failures.requeue(self._pool, bot_id, which, self._by, progress)
        if moved.moved:
            await self._pool.execute(sql.NOTIFY)
        return moved

    async def discard(self, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        return await failures.discard(self._pool, bot_id, which, self._by, progress)

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return await pinning.pinned(self._pool, bot_id, user_id)

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str) -> Pin:
        return await pinning.trust(self._pool, bot_id, user_id, fingerprint, self._by)

    async def forget(self, bot_id: BotId, user_id: int) -> Pin | None:
        return await pinning.forget(self._pool, bot_id, user_id, self._by)


class Opens(Calls, Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class SQLiteSource:
    """Takes no lock of a bot: the process that handles it goes on."""

    def __init__(self, driver: Opens, by: str, now: Callable[[], float] = time.time) -> None:
        self._driver = driver
        self._by = by
        self._now = now

    async def open(self) -> None:
        await self._driver.start()

    async def close(self) -> None:
        await self._driver.stop()

    async def knows(self, bot_id: BotId) -> bool:
        return await self._driver.call(lambda db: sqlite_reading.knows(db, bot_id))

    async def page(self, bot_id: BotId, matching: Filter, mark: Mark) -> tuple[list[FailedUpdate], Mark]:
        page = await self._driver.call(
            lambda db: sqlite_reading.failed_updates(db, bot_id, mark, PAGE, matching)
        )
        return page, last_of(page)

    async def requeue(self, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        by, now = self._by, self._micros()
        return await sqlite_failures.move(self._driver, "retry", bot_id, which, by, now, progress)

    async def discard(self, bot_id: BotId, which: Which, progress: Progress) -> Moved:
        by, now = self._by, self._micros()
        return await sqlite_failures.move(self._driver, "discard", bot_id, which, by, now, progress)

    async def pinned(self, bot_id: BotId, user_id: int) -> Pin | None:
        return await self._driver.call(lambda db: sqlite_pinning.pinned(db, bot_id, user_id))

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str) -> Pin:
        key, by, now = fingerprint_of(fingerprint), self._by, self._micros()
        return await self._driver.call(lambda db: sqlite_pinning.trust(db, bot_id, user_id, key, by, now))

    async def forget(self, bot_id: BotId, user_id: int) -> Pin | None:
        by, now = self._by, self._micros()
        return await self._driver.call(lambda db: sqlite_pinning.forget(db, bot_id, user_id, by, now))

    def _micros(self) -> int:
        return micros(self._now())
