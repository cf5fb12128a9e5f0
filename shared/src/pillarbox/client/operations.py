"""What both clients do, on one bot of one source."""

import getpass
from collections.abc import Iterable
from dataclasses import replace

from pillarbox.client.messages import Messages
from pillarbox.client.source import Mark, Source
from pillarbox.errors import SettingError, UnknownBot
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import FailedUpdate, Filter, Moved, Pin, Progress, Which, unheard
from pillarbox.inbox.filtering import is_int64


class Operations:
    def __init__(self, source: Source, bot_id: int) -> None:
        if bot_id < 0 or not is_int64(bot_id):
            raise SettingError("bot_id is the number before the colon of the bot's token")
        self._source = source
        self._bot_id = BotId(bot_id)
        self._ready = False

    async def ready(self) -> None:
        """Opens the source, once, and looks whether there is such a bot."""
        if self._ready:
            return
        try:
            await self._open()
        except BaseException:
            await self._source.close()
            raise
        self._ready = True

    async def _open(self) -> None:
        try:
            await self._source.open()
        except SettingError as error:
            raise SettingError(str(error).removeprefix("DATABASE_URL: ")) from None
        if not await self._source.knows(self._bot_id):
            raise UnknownBot(f"nothing was ever stored of bot {self._bot_id} there; check bot_id")

    async def close(self) -> None:
        if self._ready:
            self._ready = False
            await self._source.close()

    async def page(self, matching: Filter, mark: Mark) -> tuple[list[FailedUpdate], Mark]:
        return await self._source.page(self._bot_id, matching, mark)

    async def requeue(self, which: Which, progress: Progress | None) -> Moved:
        return await self._source.requeue(self._bot_id, which, progress or unheard)

    async def discard(self, which: Which, progress: Progress | None) -> Moved:
        return await self._source.discard(self._bot_id, which, progress or unheard)

    @property
    def bot_id(self) -> BotId:
        return self._bot_id

    @property
    def messages(self) -> Messages:
        """Raises SettingError for a source that has none."""
        found: Messages | None = getattr(self._source, "messages", None)
        if found is None:
            raise SettingError("messages are in the queue; give the address of admin (http://…) or redis://…")
        return found

    async def pinned(self, user_id: int) -> Pin | None:
        return await self._source.pinned(self._bot_id, person(user_id))

    async def trust(self, user_id: int, fingerprint: str) -> Pin:
        return await self._source.trust(self._bot_id, person(user_id), fingerprint)

    async def forget(self, user_id: int) -> Pin | None:
        return await self._source.forget(self._bot_id, person(user_id))


def looked_for(update_ids: Iterable[int] | None, matching: Filter) -> Filter:
    """Those that match, of these ids where some are given."""
    if update_ids is None:
        return matching
    return replace(matching, update_ids=tuple(filter(is_int64, _ids(update_ids))))


def which(update_ids: Iterable[int] | None, matching: Filter) -> Which:
    """The ids, those that match, or all. Raises TypeError for both at once."""
    if update_ids is None:
        return None if matching == Filter() else matching
    if matching != Filter():
        raise TypeError("give update_ids or a filter, not both")
    return _ids(update_ids)


def _ids(update_ids: Iterable[int]) -> list[UpdateId]:
    ids = list(update_ids)
    if not all(isinstance(update_id, int) for update_id in ids):
        raise TypeError("update_ids are whole numbers")
    return [UpdateId(update_id) for update_id in ids]


def person(user_id: int) -> int:
    if not is_int64(user_id):
        raise ValueError("user_id is a whole number of 64 bits")
    return user_id


def account() -> str:
    """Whom the audit names where nobody is named: the account of this machine."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in a container
        return "client"
