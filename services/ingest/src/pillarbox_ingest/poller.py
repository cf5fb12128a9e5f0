"""getUpdates for one bot: fetch, store for good, and only then ask for what follows (Bot API, "getUpdates").

The offset lives no longer than it takes Telegram to answer a call with it: after an idle week ids begin
anew, also lower, and an old offset would confirm updates that nobody has seen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter, time
from typing import Any, Protocol

from pillarbox.backoff import Backoff
from pillarbox.errors import StorageError
from pillarbox.ids import BotId
from pillarbox.inbox.hold import Hold, Work
from pillarbox.telemetry import get_logger
from pillarbox_ingest import metrics
from pillarbox_ingest.bot_api import Refused, Unauthorized
from pillarbox_ingest.intake import Intake
from pillarbox_ingest.parsing import date_of, update_id_of
from pillarbox_ingest.polled import bodies_of
from pillarbox_ingest.trouble import Trouble, of_refusal

log = get_logger()

LOCK = "getUpdates"
GRACE = 15.0  # on top of the long poll, until an answer is given up
LAST_TIMEOUT = 5.0
SLOWEST = 30.0

WhileAlone = Callable[[str, Work], Awaitable[None]]


class Call(Protocol):
    async def __call__(self, method: str, parameters: dict[str, Any], timeout: float) -> bytes: ...


class Poller:
    """`trouble` says why nothing comes; None where it does, or where another process asks."""

    def __init__(
        self,
        bot_id: BotId,
        call: Call,
        intake: Intake,
        while_alone: WhileAlone,
        stop: asyncio.Event,
        *,
        timeout: int,
        allowed_updates: Sequence[str] | None = None,
        delete_webhook: bool = False,
    ) -> None:
        self._bot_id = bot_id
        self._call = call
        self._intake = intake
        self._while_alone = while_alone
        self._stop = stop
        self._timeout = timeout
        self._allowed_updates = allowed_updates
        self._delete_webhook = delete_webhook
        self._backoff = Backoff(first=0.5, most=SLOWEST)
        self._offset: int | None = None
        self._away = Backoff(first=0.2, most=2.0)
        self._hold: Hold | None = None
        self._unknown = False
        self.trouble: Trouble | None = None

    async def run(self) -> None:
        """Until the stop, or until Telegram has said that there is no such bot."""
        metrics.POLLING.labels(self._bot_id).set(0)
        while not self._stop.is_set() and not self._unknown:
            try:
                await self._once()
            except StorageError as error:
                if self._away.fresh:
                    log.warning("not asking: the database is away", bot=self._bot_id, reason=str(error))
                await self._pause(self._away.delay())

    async def _once(self) -> None:
        """Alone or not at all. Who stands by when the stop comes just goes."""
        alone = asyncio.ensure_future(self._while_alone(f"{LOCK}:{self._bot_id}", self._poll))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({alone, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if alone.done() or self._hold is not None:
                await alone
        finally:
            await _end(alone, stopping)

    async def _poll(self, hold: Hold) -> None:
        self._hold, self._offset = hold, None
        metrics.POLLING.labels(self._bot_id).set(1)
        log.info("asking Telegram for updates", bot=self._bot_id)
        try:
            while hold.held and not self._stop.is_set() and not self._unknown:
                await self._step()
            if self._stop.is_set() and hold.held:
                await self._confirm()
        finally:
            self._hold = None
            if not self._unknown:
                self.trouble = None
            metrics.POLLING.labels(self._bot_id).set(0)

    async def _step(self) -> None:
        started = perf_counter()
        try:
            answer = await self._ask()
            if answer is None:
                return
            bodies = bodies_of(answer)
        except Unauthorized:
            self._forget_bot()
            return
        except (Refused, ValueError) as error:
            await self._refused(error if isinstance(error, Refused) else Refused(str(error)))
            return
        metrics.POLL.observe(perf_counter() - started)
        metrics.POLLS.labels(self._bot_id, "updates" if bodies else "empty").inc()
        await self._take(bodies)
        self._away.reset()
        self._backoff.reset()
        self._tell(None)

    async def _take(self, bodies: list[bytes]) -> None:
        """Telegram has what this answer's offset confirmed; the next one confirms what is stored now."""
        self._offset = None
        if not bodies:
            return
        await self._intake.take(self._bot_id, bodies)
        ids = [update_id for body in bodies if (update_id := update_id_of(body)) is not None]
        if not ids or ids[-1] < 0:
            # 0 is no offset, and one below it makes Telegram forget what waits.
            log.error("Telegram cannot be told that these updates are stored", bot=self._bot_id)
            await self._pause(SLOWEST)
            return
        self._offset = ids[-1] + 1
        date = date_of(bodies[-1])
        if date is not None:
            metrics.LAG.labels(self._bot_id).set(max(0.0, time() - date))

    async def _ask(self) -> bytes | None:
        """None when the stop came first; what Telegram then answers is not confirmed, and comes again."""
        parameters = self._parameters(self._intake.limit, self._timeout)
        asking = asyncio.ensure_future(self._call("getUpdates", parameters, self._timeout + GRACE))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            await _end(asking, stopping)

    def _parameters(self, limit: int, timeout: int) -> dict[str, Any]:
        parameters: dict[str, Any] = {"limit": limit, "timeout": timeout}
        if self._offset is not None:
            parameters["offset"] = self._offset
        if self._allowed_updates is not None:
            parameters["allowed_updates"] = list(self._allowed_updates)
        return parameters

    async def _confirm(self) -> None:
        """Of a clean stop: without it the last batch would come again, and be known."""
        if self._offset is None:
            return
        try:
            await self._call("getUpdates", self._parameters(1, 0), LAST_TIMEOUT)
        except (Refused, Unauthorized):
            log.warning("the last batch is stored but not confirmed: it comes again", bot=self._bot_id)

    async def _refused(self, error: Refused) -> None:
        metrics.POLLS.labels(self._bot_id, "conflict" if error.status == 409 else "refused").inc()
        if self._hold is None or not self._hold.held:
            return  # the next one asks already: hence the conflict
        trouble = of_refusal(error)
        self._tell(trouble)
        if trouble.webhook and self._delete_webhook:
            await self._delete()
        await self._pause(max(self._backoff.delay(), error.after))

    async def _delete(self) -> None:
        try:
            await self._call("deleteWebhook", {"drop_pending_updates": False}, LAST_TIMEOUT)
        except (Refused, Unauthorized) as error:
            log.warning("the webhook is not deleted", bot=self._bot_id, reason=str(error))
        else:
            log.warning("the webhook is deleted, as DELETE_WEBHOOK says", bot=self._bot_id)

    def _forget_bot(self) -> None:
        self._unknown = True
        self.trouble = Trouble("Telegram knows no bot with this token")
        metrics.POLLS.labels(self._bot_id, "unauthorized").inc()
        log.error(
            "Telegram knows no bot with this token", bot=self._bot_id, fix="check its token in BOT_TOKENS"
        )

    def _tell(self, trouble: Trouble | None) -> None:
        """Once for each reason, and once when it is over."""
        if trouble == self.trouble:
            return
        if trouble is not None:
            log.warning("no updates come", bot=self._bot_id, reason=trouble.reason, fix=trouble.fix)
        elif self.trouble is not None:
            log.info("updates come again", bot=self._bot_id)
        self.trouble = trouble

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            pass


async def _end(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
