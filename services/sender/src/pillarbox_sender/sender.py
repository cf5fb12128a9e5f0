"""The loop that claims, sends and ends. What gathered while a turn was out goes with the next."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from pillarbox.backoff import Backoff
from pillarbox.errors import QueueUnavailable
from pillarbox.telemetry import get_logger
from pillarbox_sender import metrics
from pillarbox_sender.bell import Bell
from pillarbox_sender.bot_api import BotApi
from pillarbox_sender.delivery import Delivery
from pillarbox_sender.offers import MOST_OFFERED, Offers
from pillarbox_sender.outage import Outage
from pillarbox_sender.probe import Probe
from pillarbox_sender.turn import Asked, Claim, End, Handed, Turn, Turns, read_handed
from pillarbox_sender.worker import DEAD_AFTER, Worker

log = get_logger()

LONGEST_REST = 5.0
TURNS_AT_ONCE = 2
"""While Redis writes one turn down, the sends of the other half go on."""
MARGIN = 1.0
"""Seconds before a silent worker counts as dead in which it begins no send."""


class Sender:
    def __init__(
        self,
        turns: Turns,
        worker: Worker,
        api: BotApi,
        bell: Bell,
        *,
        slots: int,
        max_retries: int,
        clock: Callable[[], float],
    ) -> None:
        self._turns, self._worker, self._bell = turns, worker, bell
        self._delivery = Delivery(api, self._record, max_retries)
        self._probe = Probe(api, turns)
        self._slots = slots
        self._clock = clock
        self._sends = asyncio.TaskGroup()
        self._sending: dict[Claim, asyncio.Task[None]] = {}
        self._offers = Offers()
        self._ends: list[End] = []
        self._kept: set[str] = set()
        self._next = asyncio.Lock()
        self._wake = asyncio.Event()
        self._look, self._rung, self._unsure, self._stopping = True, False, False, False
        self._out = self._reserved = 0
        self._outage = Outage(
            "the queue cannot be reached", "the queue is reached again", backoff=Backoff(most=2.0)
        )
        self._given_back = 0
        self._answered = self._deadline = clock()
        self._look_at = self._answered + LONGEST_REST

    def wake(self) -> None:
        """There may be work: look before the rest is over."""
        self._look = True
        self._wake.set()

    def ring(self) -> None:
        self._rung = True
        self.wake()

    def handed(self, elements: Sequence[bytes]) -> None:
        """Claims that were made for this worker while it was idle."""
        self._take([read_handed(element) for element in elements])

    def unheard(self) -> None:
        """What was handed may be lost, also for an offer that is not known here any more."""
        self._lose()
        self._wake.set()

    def _record(self, end: End) -> None:
        self._ends.append(end)
        self._wake.set()

    async def run(self, stop: asyncio.Event, grace: float) -> None:
        """Sends until `stop`, then lets what is out end, `grace` seconds at most; what is cut is in doubt."""
        async with self._sends:
            self._sends.create_task(self._wake_at(stop, grace))
            async with asyncio.TaskGroup() as takers:
                for _ in range(TURNS_AT_ONCE):
                    takers.create_task(self._take_turns(stop))
            await self._finish()

    async def _wake_at(self, stop: asyncio.Event, grace: float) -> None:
        await stop.wait()
        self._stopping = True
        self._deadline = self._clock() + grace
        self._wake.set()

    async def _take_turns(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            async with self._next:
                await self._cause(stop)
                slots = 0 if stop.is_set() else min(self._free, -(-self._slots // TURNS_AT_ONCE))
                ends, self._ends = self._ends, []
                until = self._clock() + DEAD_AFTER - MARGIN
                asked = self._ask(slots, until, stop)
                self._out, self._reserved, self._look = self._out + 1, self._reserved + slots, False
            turn = await self._turn(ends, asked)
            self._out, self._reserved = self._out - 1, self._reserved - slots
            if turn is not None:
                self._begin(turn, asked, until)
            self._wake.set()

    def _ask(self, slots: int, until: float, stop: asyncio.Event) -> Asked:
        """Of two turns at once the second leaves the offer alone, so that its order is known."""
        if self._out:
            return Asked(slots)
        offer = MOST_OFFERED if self._bell.hears and not stop.is_set() else 0
        return Asked(slots, self._offers.make(until), offer)

    @property
    def _free(self) -> int:
        return self._slots - len(self._sending) - self._reserved - self._offers.slots

    @property
    def _room(self) -> bool:
        """For a claim, or for one that may be handed: a turn withdraws the offer, and uses its slots."""
        return self._free > 0 or self._offers.slots > 0

    async def _cause(self, stop: asyncio.Event) -> None:
        """Rests until there is a reason for a turn."""
        while not stop.is_set():
            self._wake.clear()
            if self._rung:
                self._rung = False
                if not self._room:
                    await self._bell.pass_on()
            if self._due:
                return
            await self._rest()

    @property
    def _due(self) -> bool:
        """While another turn is out, one is worth it only if much has gathered; none before a `restore`."""
        if not self._out:
            return bool(self._ends) or self._unsure or (self._look and self._room)
        return not self._unsure and len(self._ends) * TURNS_AT_ONCE * 2 >= self._slots

    async def _rest(self) -> None:
        """Until an end, the bell, the answer to the other turn, or when something is due."""
        idle = not self._out and self._room
        self._bell.listen(idle)
        try:
            async with asyncio.timeout(self._look_at - self._clock() if idle else LONGEST_REST):
                await self._wake.wait()
        except TimeoutError:
            self._look = True
        self._bell.listen(False)

    async def _turn(self, ends: list[End], asked: Asked) -> Turn | None:
        """None: Redis is away; the ends are kept for the next try."""
        try:
            if self._unsure:
                await self._restore(ends)
            turn = await self._turns.turn(self._worker.identity, ends, asked)
        except QueueUnavailable as error:
            self._ends = ends + self._ends
            self._lose()
            await asyncio.sleep(self._outage.failed(error))
            return None
        self._answered = self._clock()
        self._outage.ended()
        self._note(turn)
        if asked.serial and not self._offers.made(asked.serial, turn.offered, turn.withdrawn):
            self._lose()
        self._take(turn.handed)
        return turn

    def _lose(self) -> None:
        """What was claimed for us may not have come: a `restore` is due, nothing handed is begun before."""
        self._unsure = True
        self._offers.void()

    async def _restore(self, ends: list[End]) -> None:
        """An answer was lost: what was claimed for us in it was never begun."""
        known = {claim.token for claim in self._sending}
        known |= {end.claim.token for end in [*ends, *self._ends]}
        self._given_back += await self._turns.restore(self._worker.identity, [*known, *self._kept])
        self._unsure = False

    def _note(self, turn: Turn) -> None:
        if self._given_back:
            log.info("claims that were not heard of are given back", count=self._given_back)
            self._given_back = 0
        if turn.lost:
            metrics.LOST.inc(len(turn.lost))
            log.warning("sends had been taken over when they ended", count=len(turn.lost))
        for bot, kind in turn.paused:
            metrics.PAUSES.labels(kind).inc()
            log.warning("a bot is paused", bot=bot, kind=kind)

    def _begin(self, turn: Turn, asked: Asked, until: float) -> None:
        for claim in turn.claims:
            self._start(claim, until)
        for bot in turn.probes:
            self._sends.create_task(self._probe.ask(bot, self.wake))
        if asked.slots or asked.offer:
            more = len(turn.claims) == turn.slots > 0 or turn.wait == 0
            self._look = self._look or more
            wait = LONGEST_REST if turn.wait is None else min(turn.wait, LONGEST_REST)
            self._look_at = self._clock() + wait

    def _take(self, handed: Sequence[Handed]) -> None:
        """Begins what was handed for an offer that stands; the rest a `restore` may have given to others."""
        for one in handed:
            until = self._offers.take(one.serial)
            if until is None or self._stopping:
                self._delivery.give_back(one.claim)
            else:
                metrics.HANDED.inc()
                self._start(one.claim, until)
        if not self._room:
            self._wake.set()

    def _start(self, claim: Claim, until: float) -> None:
        self._sending[claim] = self._sends.create_task(self._send(claim, until))

    async def _send(self, claim: Claim, until: float) -> None:
        """After `until`, Redis may have given the claim to another worker: nothing is begun then."""
        try:
            if self._clock() > until:
                self._delivery.give_back(claim)
            elif not await self._delivery.dispatch(claim):
                self._kept.add(claim.token)
        except asyncio.CancelledError:
            self._delivery.cut(claim)
            raise
        except Exception as error:
            log.exception("a send broke off", exc_info=error)
            self._delivery.cut(claim)
        finally:
            del self._sending[claim]

    async def _finish(self) -> None:
        """The ends are tried while that helps: what a worker holds that was silent for 10 s is taken over."""
        while self._sending or self._ends or self._offers or self._unsure:
            left = self._deadline - self._clock()
            if self._gives_up(left):
                break
            if left <= 0 and self._sending:
                await self._cut()
            self._wake.clear()
            ends, self._ends = self._ends, []
            asked = Asked(serial=self._offers.make(self._clock()))
            if await self._turn(ends, asked) is None and (left <= 0 or not self._holds):
                break
            if self._sending or self._offers:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(left, 0)):
                        await self._wake.wait()

    @property
    def _holds(self) -> bool:
        return bool(self._sending or self._ends)

    def _gives_up(self, left: float) -> bool:
        if left <= 0 and not self._holds:
            return True
        if self._sending or self._clock() - self._answered <= DEAD_AFTER:
            return False
        log.warning("ends of sends could not be recorded: they are in doubt", count=len(self._ends))
        return True

    async def _cut(self) -> None:
        log.warning("sends are cut off by the stop", count=len(self._sending))
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
