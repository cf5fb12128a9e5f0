"""What the client without asyncio does with messages."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from pillarbox.client.messages import wanted
from pillarbox.client.operations import Operations
from pillarbox.client.source import Mark
from pillarbox.outbound.acts import MovedDead, Progress, unheard
from pillarbox.outbound.cancelling import Cancelled
from pillarbox.outbound.dead import Dead, DeadFilter

T = TypeVar("T")


class BlockingMessages(ABC):
    """The words of `AsyncMessages`."""

    _operations: Operations

    @abstractmethod
    def _done(self, asked: Coroutine[Any, Any, T]) -> T: ...

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
    ) -> Iterator[Dead]:
        """From the newest to the oldest, without their elements, fetched page by page."""
        bot_id = self._operations.bot_id
        return self._each_dead(wanted(bot_id, numbers, reason, method, chat_id, since, until, id))

    def _each_dead(self, matching: DeadFilter) -> Iterator[Dead]:
        mark: Mark = None
        while True:
            page, mark = self._done(self._operations.messages.page(matching, mark))
            yield from page
            if mark is None:
                return

    def dead_message(self, number: int) -> Dead | None:
        """With its element."""
        return self._done(self._operations.messages.find(self._operations.bot_id, number))

    def retry_dead(
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
        bot_id = self._operations.bot_id
        chosen = wanted(bot_id, numbers, reason, method, chat_id, since, until, id)
        return self._done(self._operations.messages.move("retry", chosen, progress))

    def discard_dead(
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
        """Forgotten for good; chosen as by `retry_dead`."""
        bot_id = self._operations.bot_id
        chosen = wanted(bot_id, numbers, reason, method, chat_id, since, until, id)
        return self._done(self._operations.messages.move("discard", chosen, progress))

    def edit_dead(self, number: int, changes: Mapping[str, Any]) -> bool:
        """Sends it with these fields in the place of its own. False: there is no such number. Raises
        MessageRefused.
        """
        return self._done(self._operations.messages.edit(self._operations.bot_id, number, changes))

    def cancel(self, id: str) -> Cancelled:
        """A message that waits, or is not due yet, never goes out; `outcome` says whether it was in time."""
        return self._done(self._operations.messages.cancel(self._operations.bot_id, id))
