"""One message: read, sent, and its end decided."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

from pillarbox.errors import MessageKept, MessageRefused, QueueUnavailable
from pillarbox.ids import BotId
from pillarbox.outbound.envelope import Envelope, decode
from pillarbox.telemetry import get_logger
from pillarbox_sender import metrics
from pillarbox_sender.bot_api import BotApi, Outcome
from pillarbox_sender.turn import Claim, End
from pillarbox_sender.verdict import in_doubt, judge

log = get_logger()

WORTHLESS_AFTER = {
    "sendchataction": 5.0,
    "answercallbackquery": 60.0,
    "answerinlinequery": 10.0,
    "answerprecheckoutquery": 10.0,
    "answershippingquery": 10.0,
}
"""Seconds from when it could go first: typing is shown for 5 s, and who pressed or asked waits no longer."""


class Delivery:
    """`record` keeps an end until Redis has it."""

    def __init__(self, api: BotApi, record: Callable[[End], None], max_retries: int) -> None:
        self._api = api
        self._record = record
        self._max_retries = max_retries

    async def dispatch(self, claim: Claim) -> bool:
        """True: the message is settled, its end is recorded: sent, dead, or again later. False: it stays in
        flight for a later run, since a change of configuration can make it readable.
        """
        try:
            envelope = decode(claim.element)
        except MessageKept as kept:
            log.warning("a message stays in flight", reason=kept.reason, kind=claim.lane.kind)
            self._end(End(claim, "kept"))
            return False
        except MessageRefused as refused:
            self._end(End(claim, "dead", reason="unreadable", detail=refused.reason))
            return True
        self._end(await self._send(claim, envelope), envelope.trace)
        return True

    async def _send(self, claim: Claim, envelope: Envelope) -> End:
        if claim.now >= _deadline(claim, envelope):
            return End(claim, "dead", reason="expired")
        begun = time.perf_counter()
        with metrics.IN_FLIGHT.track_inprogress():
            outcome = await self._call(claim.lane.bot, envelope)
        metrics.SEND_SECONDS.observe(time.perf_counter() - begun)
        end = judge(claim, envelope, outcome, self._max_retries)
        if envelope.files and end.verdict == "sent":
            await self._let_go(envelope)
        return end

    async def _call(self, bot: BotId, envelope: Envelope) -> Outcome:
        if envelope.files:
            return await self._api.upload(bot, envelope.method, envelope.params, envelope.files)
        return await self._api.call(bot, envelope.method, envelope.params)

    async def _let_go(self, envelope: Envelope) -> None:
        try:
            await self._api.sent(envelope.files)
        except QueueUnavailable as error:
            log.debug("files of a sent message are left to expire", error=str(error))

    def cut(self, claim: Claim) -> None:
        """Its send was cut off: whether it took effect is not known."""
        try:
            self._end(replace(in_doubt(claim, decode(claim.element)), error="doubt:stopped"))
        except (MessageKept, MessageRefused):
            self._end(End(claim, "kept"))

    def give_back(self, claim: Claim) -> None:
        """Nothing of it was sent, and nothing is counted."""
        self._end(End(claim, "again"))

    def _end(self, end: End, trace: str | None = None) -> None:
        metrics.SENDS.labels(end.verdict, end.claim.lane.kind).inc()
        if end.verdict == "flood":
            metrics.FLOODS.labels(end.claim.lane.kind).inc()
        if end.verdict == "dead":
            log.warning("a message is dead", **_about(end, trace))
        self._record(end)


def _deadline(claim: Claim, envelope: Envelope) -> float:
    """When it is worthless, unless it says itself when it expires."""
    if envelope.expires_at is not None:
        return envelope.expires_at
    began = max(claim.filed, envelope.not_before or 0.0)
    return began + WORTHLESS_AFTER.get(envelope.method.lower(), math.inf)


def _about(end: End, trace: str | None) -> dict[str, object]:
    """For the log: the status of a refusal, and none of its words, which may quote the message."""
    about: dict[str, object] = {"reason": end.reason, "bot": end.claim.lane.bot, "kind": end.claim.lane.kind}
    known = {"status": end.status, "trace": trace}
    return about | {name: value for name, value in known.items() if value is not None}
