"""Dead messages, as people see them: from the newest to the oldest, all or those that match."""

import heapq
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from pillarbox.ids import BotId
from pillarbox.outbound.scripts import Runs

NOBODY = "-"
MOST_NUMBER = 10**12
AT_ONCE = 25
LOOKED_AT = 150
Place = tuple[datetime, int]


@dataclass(frozen=True, slots=True)
class Dead:
    """`bot_id` is None, and `lane` empty, where the element did not say. `first_error` and `last_error` have
    kind and status, as `answered:502`, and are empty where no send failed; `detail` may have the Bot API's
    words. `element` is what came, byte for byte, and None in a list.
    """

    number: int
    bot_id: BotId | None
    lane: str
    reason: str
    detail: str = field(repr=False)
    attempts: int
    first_error: str
    last_error: str
    died_at: datetime
    id: str
    method: str
    size: int
    element: bytes | None = field(repr=False, default=None)

    @property
    def place(self) -> Place:
        return self.died_at, self.number

    @property
    def chat(self) -> str:
        """As its lane has it: `42`, `@name`, or `user:7` and the like of a call without a chat."""
        return self.lane.split(":", 2)[2] if self.lane else ""


@dataclass(frozen=True, slots=True)
class DeadFilter:
    """Everything that is given must hold. ValueError: a value that no dead message can have."""

    bot_id: BotId | None = None
    reason: str | None = None
    method: str | None = None
    chat: str | None = None
    since: datetime | None = None
    """Died then or later."""
    until: datetime | None = None
    """Died before then."""
    id: str | None = None
    numbers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if any(at is not None and at.tzinfo is None for at in (self.since, self.until)):
            raise ValueError("since and until need a time zone, such as datetime.now(UTC)")
        if not all(word is None or word.isprintable() for word in self._words):
            raise ValueError("reason, method, chat and id have no such characters")

    @property
    def _words(self) -> tuple[str | None, ...]:
        return self.reason, self.method, self.chat, self.id

    def takes(self, dead: Dead) -> bool:
        return (
            self.bot_id in (None, dead.bot_id)
            and self.reason in (None, dead.reason)
            and (self.method is None or self.method.lower() == dead.method.lower())
            and (self.chat is None or self.chat.lower() == dead.chat)
            and (self.since is None or dead.died_at >= self.since)
            and (self.until is None or dead.died_at < self.until)
            and self.id in (None, dead.id)
            and (self.numbers is None or dead.number in self.numbers)
        )

    def packed(self, newest: int | None) -> bytes:
        """What `dead_page` reads."""
        since, until = (at and str(_ms(at)) for at in (self.since, self.until))
        method, chat = (word and word.lower() for word in (self.method, self.chat))
        asked = (
            since,
            until,
            self.reason,
            method,
            chat,
            self.id,
            None if newest is None else name_of(newest),
        )
        return msgspec.msgpack.encode([word or "" for word in asked])


class DeadMessages:
    """Every method raises QueueUnavailable."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def owners(self, bot_id: BotId | None = None) -> list[str]:
        """Who has a list: this bot, or all of them, and `-` for what names none."""
        if bot_id is not None:
            return [str(bot_id)]
        bots, _ = await self._runs.call("lists")
        return sorted(bot.decode() for bot in bots)

    async def newest(self) -> int:
        """The number of what died last."""
        _, newest = await self._runs.call("lists")
        return int(newest)

    async def page(self, matching: DeadFilter, before: Place | None, limit: int) -> list[Dead]:
        """Those that died before that place, the newest first."""
        owners = await self.owners(matching.bot_id)
        lists = [await self._of(owner, matching, before, limit) for owner in owners]
        return list(islice(heapq.merge(*lists, key=lambda dead: dead.place, reverse=True), limit))

    async def _of(self, owner: str, matching: DeadFilter, before: Place | None, limit: int) -> list[Dead]:
        if matching.numbers is not None:
            chosen = await self._named(owner, matching)
            earlier = [dead for dead in chosen if before is None or dead.place < before]
            return sorted(earlier, key=lambda dead: dead.place, reverse=True)[:limit]
        found = []
        async for part in self.walk(owner, matching, before, most=limit):
            found += part
            if len(found) >= limit:
                break
        return found[:limit]

    async def _named(self, owner: str, matching: DeadFilter) -> list[Dead]:
        numbers, chosen = matching.numbers or (), []
        for at in range(0, len(numbers), AT_ONCE):
            found = await self.look(owner, numbers[at : at + AT_ONCE])
            chosen += [replace(dead, element=None) for dead in found if matching.takes(dead)]
        return chosen

    async def walk(
        self,
        owner: str,
        matching: DeadFilter,
        place: Place | None = None,
        *,
        up: bool = False,
        newest: int | None = None,
        most: int = LOOKED_AT,
    ) -> AsyncIterator[list[Dead]]:
        """Part by part from a place on: to the older ones, or `up`, to the newer ones as far as `newest`."""
        at, name = (str(_ms(place[0])), name_of(place[1])) if place else ("", "")
        asked = matching.packed(newest)
        more = True
        while more:
            direction = "up" if up else "down"
            answer = await self._runs.call("dead_page", owner, direction, at, name, most, asked)
            yield [_listed(owner, *row) for row in answer[3]]
            more, at, name = bool(answer[0]), answer[1].decode(), answer[2].decode()

    async def count(self, matching: DeadFilter) -> int:
        """Reads all of them, in parts."""
        count = 0
        for owner in await self.owners(matching.bot_id):
            async for part in self.walk(owner, matching):
                count += len(part)
        return count

    async def look(self, owner: str, numbers: Sequence[int]) -> list[Dead]:
        """With their elements; those that there are."""
        names, found = names_of(numbers), []
        while names:
            looked, rows = await self._runs.call("dead_look", owner, *names[:AT_ONCE])
            found += [_whole(owner, *row) for row in rows]
            names = names[looked:]
        return found

    async def find(self, number: int, bot_id: BotId | None = None) -> Dead | None:
        for owner in await self.owners(bot_id):
            for dead in await self.look(owner, [number]):
                return dead
        return None


def name_of(number: int) -> str:
    return f"{number:012d}"


def names_of(numbers: Sequence[int]) -> list[str]:
    """Of those that a message can have, each once, the oldest first."""
    return [name_of(number) for number in sorted(set(numbers)) if 0 < number < MOST_NUMBER]


def _whole(owner: str, name: bytes, about: bytes, line: bytes, element: bytes) -> Dead:
    return _dead(owner, name, about, line, len(element), element)


def _listed(owner: str, name: bytes, about: bytes, line: bytes, size: int) -> Dead:
    return _dead(owner, name, about, line, size, None)


def _dead(owner: str, name: bytes, about: bytes, line: bytes, size: int, element: bytes | None) -> Dead:
    said: dict[str, Any] = json.loads(about.decode("utf-8", "replace"))
    return Dead(
        number=int(name),
        bot_id=BotId(int(owner)) if owner.isdigit() else None,
        lane=said["lane"],
        reason=said["reason"],
        detail=said["detail"],
        attempts=said["attempts"],
        first_error=said.get("first", ""),
        last_error=said.get("last", ""),
        died_at=datetime.fromtimestamp(said["at"] / 1000, UTC),
        id=line.split(b"\t", 3)[3].decode(),
        method=said.get("method", ""),
        size=size,
        element=element,
    )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
