"""What runs again: `RetryUpdate`, and the errors of RETRY_ON."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from aiogram.types import ErrorEvent, Message

from pillarbox.errors import SettingError
from pillarbox.ids import BotId, Token
from pillarbox.inbox import Failed, Finished, Later, Retried
from pillarbox_dispatcher import Outbox, RetryUpdate
from pillarbox_dispatcher.passing import Passing, types
from pillarbox_dispatcher.runs import Runs
from tests.support.runs import BOT, dispatcher, end_of, lease, of
from tests.support.updates import message

HERE = "test_dispatcher_passing.py"


@pytest.mark.parametrize(("after", "seconds"), [(3, 3.0), (timedelta(minutes=1), 60.0), (0, 0.0)])
async def test_retry_update_passes_every_observer_and_drops_the_outbox(after: Any, seconds: float) -> None:
    async def answer(message: Message, outbox: Outbox) -> None:
        outbox.add(message.answer("never"))
        raise RetryUpdate(after=after)

    router = of(answer)

    @router.errors()
    async def swallow(event: ErrorEvent) -> None: ...

    assert await end_of(router) == Later(Token(7), seconds)


async def test_retry_update_ends_after_a_day() -> None:
    async def answer(message: Message) -> None:
        raise RetryUpdate(after=5)

    assert await end_of(of(answer), age=23 * 3600.0) == Later(Token(7), 5.0)
    end = await end_of(of(answer), age=25 * 3600.0)
    assert isinstance(end, Failed)
    assert end.error.startswith("RetryUpdate: ")
    assert end.error.endswith("not handled within 24 h")


PASSING = Passing((ConnectionError, TimeoutError), 0.5, 8.0, 3)


@pytest.mark.parametrize(
    ("error", "passes"),
    [(ConnectionResetError("peer"), True), (TimeoutError(), True), (KeyError("city"), False)],
)
async def test_an_error_of_retry_on_is_tried_again(error: Exception, passes: bool) -> None:
    async def answer(message: Message, outbox: Outbox) -> None:
        outbox.add(message.answer("never"))
        raise error

    runs = Runs(dispatcher(of(answer)), {BotId(42): BOT}, timeout=5, passing=PASSING)
    end = await runs.handle(lease(message(1, 5, "x")))
    if passes:
        assert isinstance(end, Retried)
        assert (end.first, end.most, end.times) == (0.5, 8.0, 3)
        assert end.error.startswith(f"{type(error).__name__}")
        assert f" at {HERE}:" in end.error
    else:
        assert isinstance(end, Failed)


async def test_a_run_that_was_too_long_is_no_error_that_may_pass() -> None:
    async def answer(message: Message) -> None:
        await asyncio.sleep(60)

    runs = Runs(dispatcher(of(answer)), {BotId(42): BOT}, timeout=0.05, passing=PASSING)
    assert isinstance(await runs.handle(lease(message(1, 5, "x"))), Failed)


async def test_an_errors_observer_comes_before_retry_on() -> None:
    async def answer(message: Message) -> None:
        raise ConnectionError

    router = of(answer)

    @router.errors()
    async def handled(event: ErrorEvent) -> None: ...

    runs = Runs(dispatcher(router), {BotId(42): BOT}, timeout=5, passing=PASSING)
    assert await runs.handle(lease(message(1, 5, "x"))) == Finished(Token(7))


def test_retry_on_names_types_of_errors() -> None:
    assert types("") == ()
    assert types("ConnectionError, asyncio.TimeoutError,json.decoder.JSONDecodeError") == (
        ConnectionError,
        TimeoutError,
        json.JSONDecodeError,
    )


@pytest.mark.parametrize(
    "name", ["Nonsense", "nowhere.Error", "json.loads", "int", "KeyboardInterrupt", ".x"]
)
def test_what_is_no_type_of_error_stops_the_start(name: str) -> None:
    with pytest.raises(SettingError, match=r"RETRY_ON: .* is no type of error"):
        types(name)
