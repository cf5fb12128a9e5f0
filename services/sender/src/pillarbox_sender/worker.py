"""A worker's name and heartbeat. One that Redis has not heard for 10 s counts as dead, and sends no more."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pillarbox.errors import QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.lanes import Lanes

BEAT_EVERY = 2.0
DEAD_AFTER = 10.0
MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """`incarnation` is of this start alone: a worker that comes back under a name is another one."""

    name: str
    incarnation: str


class Worker:
    """`bots`: whose tokens it has. `limits`: what it tells the queue that limits are; b"" leaves them."""

    def __init__(
        self,
        lanes: Lanes,
        name: str,
        clock: Callable[[], float],
        bots: Iterable[BotId] = (),
        limits: bytes = b"",
    ) -> None:
        self._lanes = lanes
        self._wanted = name
        self._clock = clock
        self._about: tuple[bytes | BotId, ...] = (limits, *bots)
        self._answered: float | None = None
        self._answering_since: float | None = None
        self.identity = Identity(name, "")

    async def enter(self) -> None:
        """Takes the name, or with a suffix where a heartbeat lives under it. Raises QueueUnavailable."""
        incarnation = uuid.uuid4().hex
        for n in range(1, MOST_NAMES):
            name = self._wanted if n == 1 else f"{self._wanted}-{n}"
            if await self._lanes.scripts.call("live", "enter", name, incarnation, *self._about):
                self.identity = Identity(name, incarnation)
                self._heard()
                return
        raise QueueUnavailable(f"{MOST_NAMES} workers have this name")

    async def beat(self) -> None:
        """Raises QueueUnavailable. A worker whose name was taken meanwhile goes on under another one."""
        name, incarnation = self.identity.name, self.identity.incarnation
        try:
            mine = await self._lanes.scripts.call("live", "beat", name, incarnation, *self._about)
        except QueueUnavailable:
            self._answering_since = None
            raise
        self._heard()
        if not mine:
            await self.enter()

    async def leave(self) -> None:
        name, incarnation = self.identity.name, self.identity.incarnation
        await self._lanes.scripts.call("live", "leave", name, incarnation, *self._about)

    def _heard(self) -> None:
        now = self._clock()
        if self._answered is None or self._answering_since is None or now - self._answered > DEAD_AFTER / 2:
            self._answering_since = now
        self._answered = now

    @property
    def may_take_over(self) -> bool:
        """Redis has answered for 10 s: after its restart, who is alive has had the time to say so."""
        return self._answering_since is not None and self._clock() - self._answering_since >= DEAD_AFTER
