"""Dead and waiting messages of one deployment, as people see them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NoReturn, Protocol

from pillarbox.client.source import PAGE, Mark
from pillarbox.errors import SettingError
from pillarbox.ids import BotId
from pillarbox.outbound.acts import DeadActs, MovedDead, Progress
from pillarbox.outbound.cancelling import Cancelled, cancel
from pillarbox.outbound.dead import Dead, DeadFilter
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Runs
from pillarbox.outbound.settings import QueueSettings
from pillarbox.settings import load

Act = Literal["retry", "discard"]


class Messages(Protocol):
    """Every method may raise QueueUnavailable or, over REST, StorageUnavailable: call again. A filter names
    the bot.
    """

    async def page(self, matching: DeadFilter, mark: Mark) -> tuple[list[Dead], Mark]: ...

    async def find(self, bot_id: BotId, number: int) -> Dead | None: ...

    async def move(self, act: Act, matching: DeadFilter, progress: Progress) -> MovedDead: ...

    async def edit(self, bot_id: BotId, number: int, changes: Mapping[str, Any]) -> bool:
        """Raises MessageRefused."""

    async def cancel(self, bot_id: BotId, id: str) -> Cancelled: ...


class QueueMessages:
    """Those of the queue itself. `by`: whom its audit names."""

    def __init__(self, runs: Runs, reader: Reader, by: str) -> None:
        self._runs, self._by = runs, by
        self._acts = DeadActs(runs, reader)

    async def page(self, matching: DeadFilter, mark: Mark) -> tuple[list[Dead], Mark]:
        page = await self._acts.messages.page(matching, mark, PAGE)
        return page, page[-1].place if len(page) == PAGE else None

    async def find(self, bot_id: BotId, number: int) -> Dead | None:
        return await self._acts.messages.find(number, bot_id)

    async def move(self, act: Act, matching: DeadFilter, progress: Progress) -> MovedDead:
        verb = self._acts.retry if act == "retry" else self._acts.discard
        return await verb(matching, self._by, progress=progress)

    async def edit(self, bot_id: BotId, number: int, changes: Mapping[str, Any]) -> bool:
        return await self._acts.edit(number, changes, self._by, bot_id=bot_id)

    async def cancel(self, bot_id: BotId, id: str) -> Cancelled:
        return await cancel(self._runs, bot_id, id, self._by)


class QueueSource:
    """The queue alone: its messages, and nothing of the inbox."""

    def __init__(self, runs: Runs, reader: Reader, by: str, end: Callable[[], Awaitable[None]]) -> None:
        self.messages = QueueMessages(runs, reader, by)
        self._end = end

    async def open(self) -> None: ...

    async def close(self) -> None:
        await self._end()

    async def knows(self, bot_id: BotId) -> bool:
        return True

    async def _none(self, *_: Any) -> NoReturn:
        raise SettingError("this is the queue; failed updates and pins are with admin, or in the database")

    page = requeue = discard = pinned = trust = forget = _none


def settings_of(url: str) -> QueueSettings:
    """What the environment says of the queue at this address."""
    return load(QueueSettings, redis_url=url)


def wanted(
    bot_id: BotId,
    numbers: Iterable[int] | None,
    reason: str | None,
    method: str | None,
    chat_id: int | str | None,
    since: datetime | None,
    until: datetime | None,
    id: str | None,
) -> DeadFilter:
    """In the words of the clients. Raises ValueError and TypeError."""
    named = None if numbers is None else tuple(numbers)
    if not all(isinstance(number, int) for number in named or ()):
        raise TypeError("numbers are whole numbers")
    chat = None if chat_id is None else str(chat_id)
    return DeadFilter(bot_id, reason, method, chat, since, until, id, named)
