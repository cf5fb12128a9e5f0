"""Messages into the lanes, and what can be seen of them."""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from redis.asyncio import Redis

from pillarbox.errors import MessageKept, MessageRefused, QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope
from pillarbox.outbound.files import Files
from pillarbox.outbound.keys import Keys
from pillarbox.outbound.lane import Lane, chat_of, class_of
from pillarbox.outbound.reading import Reader
from pillarbox.outbound.scripts import Scripts

AT_ONCE = 256
BYTES_AT_ONCE = 4 << 20
NOBODY = "-"

Known = tuple[str, str, str, str, int, str, str]


@dataclass(frozen=True, slots=True)
class Filing:
    """An element to file. `bot` and `id` are for one that names none; an `id` is filed once within 24 h."""

    element: bytes = field(repr=False)
    bot: BotId | None = None
    id: str | None = None
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """The list that elements leave when they are filed, as long as the door's lease is held."""

    list: str
    lease: str
    token: int


@dataclass(frozen=True, slots=True)
class Filed:
    filed: int = 0
    repeats: int = 0
    dead: int = 0
    kept: int = 0
    reasons: "Counter[str]" = field(default_factory=Counter, compare=False)
    """Why some are dead or kept; a repeat of a dead one is among them."""
    rung: int = field(default=0, compare=False)
    """Bells that were rung: not all that may be sent was handed to idle workers."""

    def __add__(self, other: "Filed") -> "Filed":
        return Filed(
            self.filed + other.filed,
            self.repeats + other.repeats,
            self.dead + other.dead,
            self.kept + other.kept,
            self.reasons + other.reasons,
            self.rung + other.rung,
        )


class LeaseLost(QueueUnavailable):
    """Another worker holds the door now; nothing was changed."""


class Lanes:
    """The lanes of a queue. Every method raises QueueUnavailable; `file` may then be called again."""

    def __init__(
        self,
        redis: "Redis",
        queue: str,
        *,
        max_dead: int = 10_000,
        max_message: int = 1 << 20,
        reader: Reader | None = None,
    ) -> None:
        self.keys = Keys(queue)
        self.scripts = Scripts(redis, queue)
        self._max_dead = max_dead
        self._reader = reader or Reader(max_message=max_message)
        self._files = Files(redis, queue)
        self._run, self._part = uuid.uuid4().hex, 0

    async def file(self, filings: Sequence[Filing], source: Source | None = None) -> Filed:
        """Files all of them, in this order inside each lane. What is no message is dead with the reason.

        Without a source it is safe to repeat for filings that have an id. With one, the filings must be the
        first elements of its list; LeaseLost says that they are another worker's now.
        """
        total = Filed()
        for part in _parts(filings):
            mark = f"{self._run} {source.list if source else ''} {self._part}"
            prepared = [self._prepared(filing, f"{mark} {place}") for place, filing in enumerate(part)]
            for one in prepared:
                await self._files.keep(one.contents)
            known, elements = [one.known for one in prepared], [one.element for one in prepared]
            total += await self._file(known, elements, source)
            self._part += 1
        return total

    async def poison(self, element: bytes, source: Source) -> None:
        """The first element of a list ended the process each time that it was filed: dead, unread."""
        await self._file([("dead", NOBODY, "", "", 0, "poison", "")], [element], source)

    async def _file(self, known: list[Known], elements: list[bytes], source: Source | None) -> Filed:
        where = (source.list, source.lease, source.token) if source else ("", "", "")
        held, *counts = await self.scripts.call(
            "file", *where, self._max_dead, msgspec.msgpack.encode(known), *elements
        )
        if not held:
            raise LeaseLost("the door's lease is another worker's")
        filed, repeats, dead, kept, rung = counts
        reasons = Counter(one[5] for one in known if one[0] != "file")
        return Filed(filed, repeats, dead, kept, reasons, rung)

    def _prepared(self, filing: Filing, mark: str) -> "_Prepared":
        bot = str(filing.bot) if filing.bot is not None else NOBODY
        try:
            read = self._reader.read(filing.element, mark, filing.bot)
            return _Prepared(_message(filing, read.envelope), read.element, read.contents)
        except MessageRefused as refused:
            detail = str(refused).partition(": ")[2]
            dead = ("dead", bot, "", filing.id or "", 0, refused.reason, detail)
            return _Prepared(dead, filing.element)
        except MessageKept as kept:
            return _Prepared(("kept", bot, "", "", 0, kept.reason, ""), filing.element)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The mark of its files stays the same until the part is filed: trying again keeps no second copy."""

    known: Known
    element: bytes = field(repr=False)
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def _message(filing: Filing, envelope: Envelope) -> Known:
    bot = envelope.bot if envelope.bot is not None else filing.bot
    if bot is None:
        raise MessageRefused("bot", "it names no bot, and there are several")
    lane = Lane(bot, class_of(envelope, filing.bulk), chat_of(envelope))
    due = int((envelope.not_before or 0) * 1000)
    mark = filing.id or envelope.id or ""
    return ("file", str(bot), str(lane), mark, due, envelope.on_doubt, "")


def _parts(filings: Sequence[Filing]) -> Iterator[Sequence[Filing]]:
    """Few and small enough for one call each: Redis serves nobody else while a script runs."""
    begin = size = 0
    for index, filing in enumerate(filings):
        if index > begin and (index - begin == AT_ONCE or size + len(filing.element) > BYTES_AT_ONCE):
            yield filings[begin:index]
            begin, size = index, 0
        size += len(filing.element)
    if begin < len(filings):
        yield filings[begin:]
