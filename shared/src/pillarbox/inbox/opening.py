"""Which storage the settings name, and how a process opens it, however long its database is away."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from pillarbox.backoff import Backoff
from pillarbox.errors import SettingError, StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox.storage import Storage
from pillarbox.settings import InboxSettings
from pillarbox.telemetry import get_logger

POSTGRES = ("postgresql://", "postgres://")
FIX = "set it, for example DATABASE_URL=postgresql://pillarbox:secret@postgres/pillarbox"

log = get_logger()


def storage_of(settings: InboxSettings) -> Storage:
    """Opens nothing. SettingError where there is no such storage."""
    url = settings.database_url.get_secret_value()
    if settings.storage is not None:
        return _named(settings.storage).from_url(url, settings.limits)
    if url.startswith(POSTGRES):
        from pillarbox.inbox.postgres import PostgresStorage

        return PostgresStorage(settings)
    if url.startswith("memory://"):
        from pillarbox.inbox.memory import MemoryStorage

        return MemoryStorage.from_url(url, settings.limits)
    if "://" in url and not url.startswith("sqlite:///"):
        raise SettingError(f"DATABASE_URL: it must begin with postgresql:// or sqlite:///; {FIX}")
    from pillarbox.inbox.sqlite import SQLiteStorage

    return SQLiteStorage.from_url(url, settings.limits)


def shared_storage_of(settings: InboxSettings) -> Storage:
    """For a service that is a process of its own: its storage must keep and share what it takes."""
    url = settings.database_url.get_secret_value()
    if settings.storage is None and not url.startswith(POSTGRES):
        raise SettingError(
            "DATABASE_URL: services that run by themselves need PostgreSQL; SQLite and memory are for"
            f" `pillarbox run`, all of them in one process; {FIX}"
        )
    storage = storage_of(settings)
    if not (storage.durable and storage.shared):
        raise SettingError(
            "STORAGE: a storage that is not durable, or not shared between processes, is for `pillarbox run`"
            " alone; start that, or name another storage"
        )
    return storage


def _named(name: str) -> type[Storage]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingError(
            f"STORAGE: {name} cannot be imported ({error}); name it as package.module:Class"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Storage)):
        raise SettingError(f"STORAGE: {name} is no subclass of pillarbox.inbox.Storage; make it one")
    return found


class Inbox:
    """A storage that one task of a process opens; whoever works with it waits for that."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._opened = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    async def opened(self) -> None:
        await self._opened.wait()

    async def open(self, bot_ids: Sequence[BotId] = ()) -> None:
        """And takes the right to these bots' updates. Raises SettingError and PollingConflictError."""
        await _patiently(self.storage.open)
        await _patiently(partial(self.storage.lock, bot_ids))
        self._opened.set()

    async def check(self) -> None:
        """For readiness."""
        if not self.is_open:
            raise StorageUnavailable("the database was not there yet")
        await self.storage.ping()


async def _patiently(call: Callable[[], Awaitable[None]]) -> None:
    backoff = Backoff()
    while True:
        try:
            return await call()
        except StorageUnavailable as error:
            if backoff.fresh:
                log.warning("the database is away, waiting for it", reason=str(error))
            await asyncio.sleep(backoff.delay())


@asynccontextmanager
async def opening(storage: Storage, bot_ids: Sequence[BotId] = ()) -> AsyncIterator[Inbox]:
    """Opens it in the background, closes it at the end; a storage that refuses ends the block."""
    inbox = Inbox(storage)
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(inbox.open(bot_ids), name="open the inbox")
            yield inbox
            task.cancel()
    finally:
        await storage.close()
