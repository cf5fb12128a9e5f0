"""What people do with dead messages: they are retried, edited and sent, or discarded."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pillarbox.errors import MessageKept, MessageRefused
from pillarbox.ids import BotId
from pillarbox.outbound.dead import AT_ONCE, NOBODY, Dead, DeadFilter, DeadMessages, name_of, names_of
from pillarbox.outbound.envelope import fields_of
from pillarbox.outbound.files import KEPT
from pillarbox.outbound.lane import Lane, chat_of, class_of
from pillarbox.outbound.producers.functions import is_function_call
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Runs

Which = DeadFilter | Sequence[int]
"""Those that match, an empty filter for all; or these numbers."""
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class MovedDead:
    """`unknown`: numbers that are not in the list. `refused` stay there: they are no messages, or their id
    was filed since.
    """

    moved: int = 0
    unknown: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()


@dataclass(slots=True)
class _Batch:
    """What one script did with some names of one owner."""

    moved: int = 0
    unknown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


Act = Callable[[str, list[str], str], Awaitable[tuple[int, _Batch]]]


def unheard(moved: int) -> None:
    """The progress that nobody follows."""


class DeadActs:
    """Every method raises QueueUnavailable; each batch is whole, so the same call may be made again."""

    def __init__(self, runs: Runs, reader: Reader) -> None:
        self._runs, self._reader = runs, reader
        self.messages = DeadMessages(runs)

    async def retry(
        self, which: Which, by: str, *, bot_id: BotId | None = None, progress: Progress = unheard
    ) -> MovedDead:
        """To the ends of their lanes, the oldest first, as if they had just come, whatever id was filed."""
        return await self._move(self._retried, which, by, bot_id, progress)

    async def discard(
        self, which: Which, by: str, *, bot_id: BotId | None = None, progress: Progress = unheard
    ) -> MovedDead:
        """Gone for good. Works while Redis is full."""
        return await self._move(self._discarded, which, by, bot_id, progress)

    async def edit(
        self, number: int, changes: Mapping[str, Any], by: str, *, bot_id: BotId | None = None
    ) -> bool:
        """Sends it with these fields in the place of its own; None takes a field away. False: there is no
        such number. Raises MessageRefused, as a push of it would be, and then it stays as it was.
        """
        dead = await self.messages.find(number, bot_id)
        if dead is None:
            return False
        if "id" in changes:
            raise MessageRefused("id", "it keeps its own")
        element = _encoded(_fields(dead, self._reader) | dict(changes))
        entry = self._entry(dead, element)
        _, batch = await self._revived(_owner(dead), by, "edit", *entry)
        if batch.refused:
            raise MessageRefused("id", "a message with its id was filed since")
        return batch.moved == 1

    async def _move(
        self, act: Act, which: Which, by: str, bot_id: BotId | None, progress: Progress
    ) -> MovedDead:
        if isinstance(which, DeadFilter) and which.numbers is None:
            return await self._matching(act, which, by, bot_id, progress)
        numbers = which.numbers if isinstance(which, DeadFilter) else which
        return await self._numbered(act, which, list(numbers or ()), by, bot_id, progress)

    async def _matching(
        self, act: Act, matching: DeadFilter, by: str, bot_id: BotId | None, progress: Progress
    ) -> MovedDead:
        """What dies while it runs is not touched."""
        newest, total = await self.messages.newest(), _Batch()
        for owner in await self.messages.owners(matching.bot_id if bot_id is None else bot_id):
            async for part in self.messages.walk(owner, matching, up=True, newest=newest):
                await self._all(act, owner, [name_of(dead.number) for dead in part], by, total, progress)
        return MovedDead(total.moved, (), _numbers(total.refused))

    async def _numbered(
        self, act: Act, which: Which, numbers: list[int], by: str, bot_id: BotId | None, progress: Progress
    ) -> MovedDead:
        names, total = names_of(numbers), _Batch()
        matching = which if isinstance(which, DeadFilter) else DeadFilter()
        for owner in await self.messages.owners(matching.bot_id if bot_id is None else bot_id):
            total.unknown = []
            if matching != DeadFilter():
                names = await self._those_of(owner, names, matching, total)
            await self._all(act, owner, names, by, total, progress)
            names = sorted(total.unknown)
        known = set(names_of(numbers)) - set(names)
        left = [number for number in dict.fromkeys(numbers) if name_of(max(number, 0)) not in known]
        return MovedDead(total.moved, tuple(left), _numbers(total.refused))

    async def _those_of(self, owner: str, names: list[str], matching: DeadFilter, total: _Batch) -> list[str]:
        found = await self.messages.look(owner, _numbers(names))
        taken = {name_of(dead.number) for dead in found if matching.takes(dead)}
        total.unknown = [name for name in names if name not in taken]
        return [name for name in names if name in taken]

    async def _all(
        self, act: Act, owner: str, names: list[str], by: str, total: _Batch, progress: Progress
    ) -> None:
        while names:
            looked, batch = await act(owner, names[:AT_ONCE], by)
            total.moved += batch.moved
            total.unknown += batch.unknown
            total.refused += batch.refused
            progress(batch.moved)
            names = names[looked:]

    async def _discarded(self, owner: str, names: list[str], by: str) -> tuple[int, _Batch]:
        looked, moved, unknown = await self._runs.call("dead_discard", owner, by, *names)
        return looked, _Batch(moved, _decoded(unknown))

    async def _retried(self, owner: str, names: list[str], by: str) -> tuple[int, _Batch]:
        """What was no message when it was filed may be one by now: settings have changed."""
        looked, batch = await self._revived(owner, by, "retry", [[name] for name in names])
        for dead in await self.messages.look(owner, _numbers(batch.refused)) if batch.refused else []:
            if dead.lane or dead.element is None:
                continue
            try:
                entry = self._entry(dead, dead.element)
            except (MessageRefused, MessageKept):
                continue
            _, again = await self._revived(owner, by, "retry", *entry)
            batch.moved += again.moved
            batch.unknown += again.unknown
            if not again.refused:
                batch.refused.remove(name_of(dead.number))
        return looked, batch

    async def _revived(
        self, owner: str, by: str, action: str, entries: list[Any], *contents: bytes
    ) -> tuple[int, _Batch]:
        packed = msgspec.msgpack.encode(entries)
        answer = await self._runs.call("dead_retry", owner, by, action, packed, *contents)
        looked, moved, unknown, refused = answer
        return looked, _Batch(moved, _decoded(unknown), _decoded(refused))

    def _entry(self, dead: Dead, element: bytes) -> tuple[Any, ...]:
        """A dead message that is this element now, as `dead_retry` reads it: what is known, and the bytes."""
        read = self._reader.read(element, f"dead {dead.number}")
        envelope = read.envelope
        bot = dead.bot_id if dead.bot_id is not None else envelope.bot
        if bot is None:
            raise MessageRefused("bot", "it names no bot")
        if envelope.bot not in (None, bot):
            raise MessageRefused("bot", "it stays the bot's")
        lane = Lane(bot, class_of(envelope, ":bulk:" in dead.lane), chat_of(envelope))
        due = int((envelope.not_before or 0) * 1000)
        known = (str(lane), due, envelope.on_doubt, envelope.id or "", list(read.contents), KEPT)
        return [[name_of(dead.number), *known]], read.element, *read.contents.values()


def _encoded(fields: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError):
        raise MessageRefused("params", "they have no form in JSON") from None


def _fields(dead: Dead, reader: Reader) -> dict[str, Any]:
    """The fields that it has in our form; none where it cannot be read."""
    element = dead.element or b""
    try:
        return fields_of(reader.read(element, f"dead {dead.number}").element)
    except (MessageRefused, MessageKept):
        pass
    try:
        fields = fields_of(element)
    except MessageRefused:
        return {}
    return {} if is_function_call(fields) else fields


def _owner(dead: Dead) -> str:
    return NOBODY if dead.bot_id is None else str(dead.bot_id)


def _decoded(names: Sequence[bytes]) -> list[str]:
    return [name.decode() for name in names]


def _numbers(names: Sequence[str]) -> tuple[int, ...]:
    return tuple(int(name) for name in names)
