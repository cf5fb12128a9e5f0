"""One run: from an update's bytes to its end."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from aiogram import Bot, Dispatcher
from aiogram.dispatcher.event.bases import UNHANDLED, CancelHandler
from aiogram.methods import TelegramMethod
from aiogram.types import Update
from pydantic import ValidationError

from pillarbox.ids import BotId
from pillarbox.inbox import End, Failed, Finished, FsmKey, Later, Lease
from pillarbox.inbox.sealing import is_sealed
from pillarbox.telemetry import get_logger
from pillarbox_dispatcher import cancels, metrics
from pillarbox_dispatcher.current import Current
from pillarbox_dispatcher.deadline import Deadlines, HandlerTimeout
from pillarbox_dispatcher.failures import describe, place, unreadable, without_message
from pillarbox_dispatcher.feed import Feed
from pillarbox_dispatcher.outbox import Outbox
from pillarbox_dispatcher.passing import Passing
from pillarbox_dispatcher.retry import RetryUpdate
from pillarbox_dispatcher.states import States

RETRY_FOR = 24 * 3600.0
WITHOUT_TOKEN = 60.0
NEVER = Passing()

log = get_logger()


class _Unreadable(Exception):
    """aiogram cannot read the body; the text says where, and holds none of it."""


class Runs:
    """Runs the handlers of leased updates and says how each run ended.

    `handle` returns an end for whatever its handlers do; only being cancelled by `cancels` leaves it without.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        bots: Mapping[BotId, Bot],
        *,
        timeout: float,
        max_message: int = 1 << 20,
        passing: Passing = NEVER,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._feed_update = Feed(dispatcher)
        self._bots = bots
        self._timeout = timeout
        self._deadlines = Deadlines(timeout)
        self._max_message = max_message
        self._passing = passing
        self._now = now
        self._unknown: set[BotId] = set()

    async def handle(self, lease: Lease) -> End:
        metrics.start_age_seconds.observe(self._now() - lease.accepted_at.timestamp())
        bot = self._bots.get(lease.bot_id)
        if bot is None:
            return self._without_token(lease)
        started = time.perf_counter()
        outcome, end = await self._run(lease, bot)
        metrics.handler_seconds.observe(time.perf_counter() - started)
        metrics.updates.add(lease.bot_id, outcome)
        return end

    async def _run(self, lease: Lease, bot: Bot) -> tuple[str, End]:
        task = _this_task()
        run = Current(Outbox(bot, self._max_message), States())
        if lease.fsm is not None:
            run.states.learn(FsmKey(lease.bot_id, lease.lane), lease.fsm)
        try:
            with run:
                result = await self._feed(lease, bot, run.outbox, task)
            if isinstance(result, TelegramMethod):
                run.outbox.add(result)
        except _Unreadable as error:
            return self._failed(lease, error, "unreadable", str(error))
        except RetryUpdate as again:
            return self._later(lease, again)
        except CancelHandler:
            result = None
        except asyncio.CancelledError as error:
            if cancels.is_ours(task):
                raise
            return self._failed(lease, error, "failed", describe(error, "the handler was cancelled"))
        except BaseException as error:  # SystemExit and the like, too, are of this update alone
            if self._passing.takes(error):
                return self._retried(lease, error)
            outcome = "timeout" if isinstance(error, HandlerTimeout) else "failed"
            return self._failed(lease, error, outcome, describe(error))
        end = Finished(lease.token, run.outbox.elements(), run.states.writes())
        return "unmatched" if result is UNHANDLED else "finished", end

    async def _feed(self, lease: Lease, bot: Bot, outbox: Outbox, task: "asyncio.Task[Any]") -> Any:
        update = _update(lease.body, bot)
        deadline = self._deadlines.set(task)
        try:
            result = await self._feed_update(bot, update, outbox=outbox)
            if task.cancelling():
                await cancels.let_through()
            return result
        except asyncio.CancelledError as error:
            if not deadline.was_why():
                raise
            late = HandlerTimeout(f"longer than HANDLER_TIMEOUT, {self._timeout:g} s")
            raise late.with_traceback(error.__traceback__) from None
        finally:
            deadline.end()

    def _without_token(self, lease: Lease) -> End:
        if lease.bot_id not in self._unknown:
            self._unknown.add(lease.bot_id)
            log.warning("BOT_TOKENS has no token of a bot, its updates wait", bot=lease.bot_id)
        metrics.updates.add(lease.bot_id, "no_token")
        return Later(lease.token, WITHOUT_TOKEN)

    def _later(self, lease: Lease, again: RetryUpdate) -> tuple[str, End]:
        if lease.age > RETRY_FOR:
            return self._failed(lease, again, "failed", f"{describe(again)}: not handled within 24 h")
        return "later", Later(lease.token, again.after)

    def _retried(self, lease: Lease, error: BaseException) -> tuple[str, End]:
        _tell("update is tried again", lease, error)
        return "retried", self._passing.end(lease.token, _kept(lease, error, describe(error)))

    def _failed(self, lease: Lease, error: BaseException, outcome: str, text: str) -> tuple[str, End]:
        _tell("update failed", lease, error)
        return outcome, Failed(lease.token, _kept(lease, error, text))


def _kept(lease: Lease, error: BaseException, text: str) -> str:
    return without_message(error) if is_sealed(lease.body) else text


def _tell(what: str, lease: Lease, error: BaseException) -> None:
    log.warning(
        what,
        bot=lease.bot_id,
        update_id=lease.update_id,
        kind=lease.kind,
        run=lease.run,
        error=type(error).__qualname__,
        place=place(error),
    )


def _this_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a run is a task of its own")
    return task


def _update(body: bytes, bot: Bot) -> Update:
    try:
        return Update.model_validate_json(body, context={"bot": bot})
    except ValidationError as error:
        raise _Unreadable(unreadable(error)) from None
