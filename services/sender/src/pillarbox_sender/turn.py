"""One turn: the ends of sends to Redis, and the next messages to send from it, in one call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from pillarbox.ids import BotId
from pillarbox.outbound.lane import Lane
from pillarbox.outbound.lanes import Lanes
from pillarbox.said import bounded
from pillarbox_sender.worker import Identity

Verdict = Literal["sent", "dead", "again", "flood", "token", "kept"]
Health = Literal["", "up", "down"]


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A message that this worker may send now. The counts are of earlier sends; `filed` and `now` are Unix
    seconds of Redis's clock. A trial is the first call after an outage.
    """

    owner: str
    lane: Lane
    token: str
    attempts: int
    unsent: int
    doubts: int
    trial: bool
    filed: float
    now: float
    element: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """What became of a claim. `delay` is in seconds; `counted` is the count that grows, if one does."""

    claim: Claim
    verdict: Verdict
    delay: float = 0.0
    counted: Literal["", "attempts", "unsent", "doubts"] = ""
    reason: str = ""
    detail: str = field(default="", repr=False)
    health: Health = ""
    status: int | None = None
    """Of the answer that a message is dead for."""
    error: str = ""
    """What went wrong: `answered:502`, or `unsent:…` or `doubt:…` with the error's type. One word."""

    def arguments(self) -> tuple[str | int, ...]:
        first: str | int = self.reason if self.verdict == "dead" else int(bounded(self.delay) * 1000)
        second = self.detail if self.verdict == "dead" else self.counted
        claim = self.claim
        return claim.owner, str(claim.lane), claim.token, self.verdict, first, second, self.health, self.error


@dataclass(frozen=True, slots=True)
class Turn:
    """`wait`: seconds until there may be more, None where nothing is known to come."""

    alive: bool
    wait: float | None
    probes: list[BotId]
    lost: frozenset[str]
    claims: list[Claim]
    paused: list[tuple[BotId, str]]


class Turns:
    def __init__(self, lanes: Lanes, bots: Sequence[BotId], max_dead: int) -> None:
        self._lanes = lanes
        self._bots = list(bots)
        self._max_dead = max_dead

    async def turn(self, identity: Identity, ends: Sequence[End], slots: int) -> Turn:
        """Raises QueueUnavailable: whether the call took effect is unknown then. The same ends may be given
        again, and `restore` gives back what was claimed and never heard of.
        """
        self._bots.append(self._bots.pop(0))
        packed = (_pack([str(bot) for bot in self._bots]), _pack([end.arguments() for end in ends]))
        name, incarnation = identity.name, identity.incarnation
        answer = await self._lanes.scripts.call("turn", name, incarnation, slots, self._max_dead, *packed)
        return _turn(identity, answer)

    async def restore(self, identity: Identity, known: Sequence[str]) -> int:
        return int(await self._lanes.scripts.call("restore", identity.incarnation, *known))

    async def probed(self, bot: BotId) -> None:
        await self._lanes.scripts.call("probed", bot)


_pack = msgspec.msgpack.encode


def _turn(identity: Identity, answer: Any) -> Turn:
    alive, now, wait, probes, lost, claims, paused = answer
    return Turn(
        alive=bool(alive),
        wait=wait / 1000 if wait >= 0 else None,
        probes=[BotId(int(bot)) for bot in probes],
        lost=frozenset(token.decode() for token in lost),
        claims=[_claim(identity, now / 1000, *claim) for claim in claims],
        paused=[_paused(line) for line in paused],
    )


def _claim(
    identity: Identity, now: float, lane: bytes, token: bytes, head: bytes, trial: int, message: bytes
) -> Claim:
    line, _, element = message.partition(b"\n")
    attempts, unsent, doubts = map(int, head.split()[:3])
    return Claim(
        owner=identity.incarnation,
        lane=Lane.parse(lane.decode()),
        token=token.decode(),
        attempts=attempts,
        unsent=unsent,
        doubts=doubts,
        trial=bool(trial),
        filed=int(line.split(b"\t", 2)[1]) / 1000,
        now=now,
        element=element,
    )


def _paused(line: bytes) -> tuple[BotId, str]:
    bot, kind = line.decode().split(" ")
    return BotId(int(bot)), kind
