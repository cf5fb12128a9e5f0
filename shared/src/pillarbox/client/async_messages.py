"""What the client for asyncio does with messages."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from datetime import datetime
from typing import Any

from pillarbox.client.messages import wanted
from pillarbox.client.operations import Operations
from pillarbox.client.source import Mark
from pillarbox.outbound.acts import MovedDead, Progress, unheard
from pillarbox.outbound.cancelling import Cancelled
from pillarbox.outbound.dead import Dead


class AsyncMessages(ABC):
    """Every call raises QueueUnavailable or StorageUnavailable where it may be repeated."""

    @abstractmethod
    async def _ready(self) -> Operations: ...

    def dead_messages(
        self,
        numbers: Iterable[int] | None = None,
        *,
        reason: str | None = None,
        method: str | None = None,
        chat_id: int | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        id: str | None = None,
    ) -> "DeadMessages":
        """From the newest to the oldest, without their elements; `id` is the producer's."""
        return DeadMessages(self, (numbers, reason, method, chat_id, since, until, id))

    async def dead_message(self, number: int) -> Dead | None:
        """With its element."""
        ready = await self._ready()
        return await ready.messages.find(ready.bot_id, number)

    async def retry_dead(
        self,
        numbers: Iterable[int] | None = None,
        *,
        reason: str | None = None,
        method: str | None = None,
        chat_id: int | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        id: str | None = None,
        progress: Progress = unheard,
    ) -> MovedDead:
        """To the ends of their lanes, the oldest first: these, those that match, or all of the bot."""
        ready = await self._ready()
        chosen = wanted(ready.bot_id, numbers, reason, method, chat_id, since, until, id)
        return await ready.messages.move("retry", chosen, progress)

    async def discard_dead(
        self,
        numbers: Iterable[int] | None = None,
        *,
        reason: str | None = None,
        method: str | None = None,
        chat_id: int | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        id: str | None = None,
        progress: Progress = unheard,
    ) -> MovedDead:
        """Forgotten for good; chosen and answered as by `retry_dead`."""
        ready = await self._ready()
        chosen = wanted(ready.bot_id, numbers, reason, method, chat_id, since, until, id)
        return await ready.messages.move("discard", chosen, progress)

    async def edit_dead(self, number: int, changes: Mapping[str, Any]) -> bool:
        """Sends it with these fields in the place of its own, such as `params`; None takes a field away.
        False: there is no such number. Raises MessageRefused.
        """
        ready = await self._ready()
        return await ready.messages.edit(ready.bot_id, number, changes)

    async def cancel(self, id: str) -> Cancelled:
        """A message that waits, or is not due yet, never goes out; `outcome` says whether it was in time."""
        ready = await self._ready()
        return await ready.messages.cancel(ready.bot_id, id)


class DeadMessages:
    """`async for` fetches page by page; `await` gives all of them as a list."""

    def __init__(self, client: AsyncMessages, words: tuple[Any, ...]) -> None:
        self._client, self._words = client, words

    async def __aiter__(self) -> AsyncIterator[Dead]:
        ready = await self._client._ready()
        chosen = wanted(ready.bot_id, *self._words)
        mark: Mark = None
        while True:
            page, mark = await ready.messages.page(chosen, mark)
            for dead in page:
                yield dead
            if mark is None:
                return

    def __await__(self) -> Generator[Any, None, list[Dead]]:
        return self._all().__await__()

    async def _all(self) -> list[Dead]:
        return [dead async for dead in self]
