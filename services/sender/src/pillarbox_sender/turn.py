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
class Handed:
    """A claim that was made for an idle worker, for the offer with that serial."""

    serial: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Asked:
    """How many may be claimed. With a serial the offer before is withdrawn, and its slots are used too; up to
    `offer` of what is left over is offered anew.
    """

    slots: int = 0
    serial: str = ""
    offer: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """`wait`: seconds until there may be more, None where nothing is known to come. `slots` is how many could
    be claimed, `offered` how many of them stand as an offer now; `handed` had not been popped.
    """

    alive: bool
    wait: float | None
    probes: list[BotId]
    lost: frozenset[str]
    claims: list[Claim]
    paused: list[tuple[BotId, str]]
    withdrawn: tuple[str, int] | None
    handed: list[Handed]
    slots: int
    offered: int


class Turns:
    def __init__(self, lanes: Lanes, bots: Sequence[BotId], max_dead: int) -> None:
        self._lanes = lanes
        self._bots = list(bots)
        self._max_dead = max_dead

    async def turn(self, identity: Identity, ends: Sequence[End], asked: Asked) -> Turn:
        """Raises QueueUnavailable: whether the call took effect is unknown then. The same ends may be given
        again, and `restore` gives back what was claimed and never heard of.
        """
        self._bots.append(self._bots.pop(0))
        packed = (_pack([str(bot) for bot in self._bots]), _pack([end.arguments() for end in ends]))
        name, incarnation = identity.name, identity.incarnation
        answer = await self._lanes.scripts.call(
            "turn", name, incarnation, asked.slots, self._max_dead, *packed, asked.serial, asked.offer
        )
        return _turn(identity, answer)

    async def restore(self, identity: Identity, known: Sequence[str]) -> int:
        return int(await self._lanes.scripts.call("restore", identity.incarnation, *known))

    async def probed(self, bot: BotId) -> None:
        await self._lanes.scripts.call("probed", bot)


_pack = msgspec.msgpack.encode


def read_handed(element: bytes) -> Handed:
    line, _, message = element.partition(b"\n")
    owner, serial, now, lane, token, head = line.split(b"\t")
    claim = _claim(owner.decode(), int(now) / 1000, lane, token, head, 0, message)
    return Handed(serial.decode(), claim)


def _turn(identity: Identity, answer: Any) -> Turn:
    alive, now, wait, probes, lost, claims, paused, withdrawn, handed, slots, offered = answer
    return Turn(
        alive=bool(alive),
        wait=wait / 1000 if wait >= 0 else None,
        probes=[BotId(int(bot)) for bot in probes],
        lost=frozenset(token.decode() for token in lost),
        claims=[_claim(identity.incarnation, now / 1000, *claim) for claim in claims],
        paused=[_paused(line) for line in paused],
        withdrawn=(withdrawn[0].decode(), withdrawn[1]) if withdrawn else None,
        handed=[read_handed(element) for element in handed],
        slots=slots,
        offered=offered,
    )


def _claim(
    owner: str, now: float, lane: bytes, token: bytes, head: bytes, trial: int, message: bytes
) -> Claim:
    line, _, element = message.partition(b"\n")
    attempts, unsent, doubts = map(int, head.split()[:3])
    return Claim(
        owner=owner,
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
