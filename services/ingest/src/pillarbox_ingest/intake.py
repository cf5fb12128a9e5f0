"""Stores what getUpdates brought, so that its offset may move.

A batch of getUpdates is what gathered at Telegram while the last one was committed: it is stored as it is, in
one call, without the webhook's buffer. That could give up a part of a batch and commit what stands behind it.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final, Protocol

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox import Accepted, Incoming, Malformed, Storage
from pillarbox.telemetry import get_logger
from pillarbox_ingest import metrics
from pillarbox_ingest.aside import Keep, set_aside
from pillarbox_ingest.parsing import Unreadable
from pillarbox_ingest.webhook import Parse, Put

log = get_logger()


class Intake(Protocol):
    @property
    def limit(self) -> int:
        """How many updates to ask for at once."""

    async def take(self, bot_id: BotId, bodies: Sequence[bytes]) -> None:
        """Telegram may be told of all of them when this returns.

        Raises StorageError when that is unknown. Then the same bodies are to be taken again.
        """


class Batches:
    """For a durable storage: all of them, in one transaction."""

    limit: Final = 100  # Telegram's most

    def __init__(self, storage: Storage, parse: Parse) -> None:
        self._storage = storage
        self._parse = parse

    async def take(self, bot_id: BotId, bodies: Sequence[bytes]) -> None:
        updates, malformed = _read(self._parse, bot_id, bodies)
        if updates:
            started = perf_counter()
            answers = await self._storage.accept(updates)
            metrics.COMMIT.observe(perf_counter() - started)
            metrics.BATCH.observe(len(updates))
            metrics.count_batch(updates, answers)
            malformed += _refused(updates, answers)
        for one in malformed:
            await set_aside(self._storage.malformed, one)


class OneByOne:
    """For a storage that forgets: each is confirmed alone, when `put` says that its handlers ended."""

    limit: Final = 1

    def __init__(self, put: Put, keep: Keep, parse: Parse, stopping: Callable[[], bool]) -> None:
        self._put = put
        self._keep = keep
        self._parse = parse
        self._stopping = stopping

    async def take(self, bot_id: BotId, bodies: Sequence[bytes]) -> None:
        updates, malformed = _read(self._parse, bot_id, bodies)
        for update in updates:
            malformed += _refused([update], [await self._patiently(update)])
        for one in malformed:
            await set_aside(self._keep, one)

    async def _patiently(self, update: Incoming) -> Accepted:
        """`put` has a webhook's patience; nobody waits for an answer here, and a repeat joins the run."""
        backoff = Backoff()
        while True:
            try:
                return await self._put(update)
            except StorageUnavailable:
                if self._stopping():
                    raise
            await asyncio.sleep(backoff.delay())


def _read(parse: Parse, bot_id: BotId, bodies: Sequence[bytes]) -> tuple[list[Incoming], list[Malformed]]:
    updates: list[Incoming] = []
    malformed: list[Malformed] = []
    for body in bodies:
        try:
            updates.append(parse(bot_id, body))
        except Unreadable as error:
            malformed.append(Malformed(bot_id, error.reason, body))
    return updates, malformed


def _refused(updates: Sequence[Incoming], answers: Sequence[Accepted]) -> list[Malformed]:
    refused: list[Malformed] = []
    for update, answer in zip(updates, answers, strict=True):
        if answer is Accepted.REFUSED:
            refused.append(Malformed(update.bot_id, "the database refused it", update.body))
        elif answer is Accepted.NEW_BODY:
            log.warning("an update_id came with another body", bot=update.bot_id, update_id=update.update_id)
    return refused
