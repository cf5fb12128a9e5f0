"""What comes of a run, by what its handlers do."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiogram import Bot, Dispatcher, Router
from aiogram.dispatcher.event.bases import CancelHandler, SkipHandler
from aiogram.fsm.storage.memory import MemoryStorage
from aiogram.methods import SendMessage, TelegramMethod
from aiogram.types import BufferedInputFile, CallbackQuery, ErrorEvent, Message

from pillarbox.errors import SettingError
from pillarbox.ids import BotId, RowId, Token, UpdateId
from pillarbox.inbox import End, Failed, Finished, Later, Lease, Retried
from pillarbox_dispatcher import Outbox, RetryUpdate, cancels, handlers
from pillarbox_dispatcher.passing import Passing, types
from pillarbox_dispatcher.runs import Runs
from tests.support.updates import callback, message

BOT = Bot("42:" + "a" * 35)
HERE = "test_dispatcher_runs.py"

Handler = Callable[..., Awaitable[Any]]


def dispatcher(router: Router) -> Dispatcher:
    module = type(sys)("bot")
    module.router = router  # type: ignore[attr-defined]
    return handlers.dispatcher(module, MemoryStorage())


def lease(body: bytes, kind: str = "message", age: float = 0.0) -> Lease:
    return Lease(
        token=Token(7),
        row=RowId(1),
        bot_id=BotId(42),
        lane="chat:5",
        update_id=UpdateId(1),
        kind=kind,
        body=body,
        run=1,
        accepted_at=datetime.now(UTC),
        age=age,
    )


async def end_of(
    router: Router, body: bytes = message(1, 5, "/start"), *, timeout: float = 5.0, **more: Any
) -> End:
    return await Runs(dispatcher(router), {BotId(42): BOT}, timeout=timeout).handle(lease(body, **more))


def of(handler: Handler) -> Router:
    router = Router()
    router.message.register(handler)
    return router


def texts(end: End) -> list[str]:
    assert isinstance(end, Finished)
    return [json.loads(element)["params"]["text"] for element in end.outbox]


async def test_what_a_handler_returns_comes_after_what_it_added() -> None:
    async def answer(message: Message, outbox: Outbox) -> TelegramMethod[Any]:
        outbox.add(message.answer("one"))
        outbox.add(message.reply("two"))
        return message.answer("three")

    end = await end_of(of(answer))
    assert texts(end) == ["one", "two", "three"]
    assert isinstance(end, Finished)
    reply = json.loads(end.outbox[1])
    assert reply["method"] == "sendMessage"
    assert reply["params"]["reply_parameters"]["message_id"] == 1


@pytest.mark.parametrize("result", [None, True, "text", 0], ids=repr)
async def test_any_other_result_finishes(result: Any) -> None:
    async def answer(message: Message) -> Any:
        return result

    assert await end_of(of(answer)) == Finished(Token(7))


@pytest.mark.parametrize("error", [SkipHandler, CancelHandler])
async def test_aiograms_own_ways_out_finish(error: type[Exception]) -> None:
    async def answer(message: Message) -> None:
        raise error

    assert await end_of(of(answer)) == Finished(Token(7))


async def test_an_update_that_nobody_wants_finishes() -> None:
    assert await end_of(Router()) == Finished(Token(7))
    router = Router()
    assert await end_of(router, callback(1, 5, "x"), kind="callback_query") == Finished(Token(7))


@pytest.mark.filterwarnings("ignore:Detected unknown update type:RuntimeWarning")
async def test_a_kind_that_aiogram_does_not_know_finishes() -> None:
    assert await end_of(Router(), b'{"update_id": 1, "brand_new": {"a": 1}}', kind="brand_new") == Finished(
        Token(7)
    )


async def test_of_a_sealed_updates_error_no_message_is_kept() -> None:
    async def quoting(message: Message) -> None:
        raise LookupError("it said: at noon at bot.py:1")

    end = await end_of(of(quoting), message(1, 5, "-----BEGIN PGP MESSAGE-----"))
    assert isinstance(end, Failed)
    assert re.fullmatch(rf"LookupError at {HERE}:\d+", end.error)


async def test_an_error_is_kept_with_type_message_and_place() -> None:
    async def answer(message: Message, outbox: Outbox) -> None:
        outbox.add(message.answer("never"))
        _ask({})

    line = _ask.__code__.co_firstlineno + 1
    assert await end_of(of(answer)) == Failed(Token(7), f"KeyError: 'city' at {HERE}:{line}")


def _ask(answers: dict[str, str]) -> str:
    return answers["city"]


async def test_the_place_is_in_the_users_code_though_a_library_raised() -> None:
    async def answer(message: Message) -> None:
        json.loads("{")

    end = await end_of(of(answer))
    line = answer.__code__.co_firstlineno + 1
    assert isinstance(end, Failed)
    assert end.error.startswith("JSONDecodeError: Expecting")
    assert end.error.endswith(f" at {HERE}:{line}")


async def test_an_error_that_cannot_be_stored_as_it_is() -> None:
    async def answer(message: Message) -> None:
        raise ValueError("nul \0 half \ud800 token 12345678:" + "A" * 35)

    end = await end_of(of(answer))
    assert isinstance(end, Failed)
    assert end.error.startswith("ValueError: nul  half ? token *** at ")


async def test_sys_exit_in_a_handler_fails_its_update_alone() -> None:
    async def answer(message: Message) -> None:
        sys.exit(3)

    end = await end_of(of(answer))
    assert isinstance(end, Failed)
    assert end.error.startswith("SystemExit: 3 at ")


async def test_too_long_is_failed_where_it_was() -> None:
    async def answer(message: Message, outbox: Outbox) -> None:
        outbox.add(message.answer("never"))
        await asyncio.sleep(60)

    line = answer.__code__.co_firstlineno + 2
    end = await end_of(of(answer), timeout=0.05)
    assert end == Failed(Token(7), f"HandlerTimeout: longer than HANDLER_TIMEOUT, 0.05 s at {HERE}:{line}")


async def test_a_handlers_own_timeout_is_its_own_error() -> None:
    async def answer(message: Message) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    end = await end_of(of(answer))
    assert isinstance(end, Failed)
    assert end.error.startswith("TimeoutError at ")


async def test_zero_is_no_timeout() -> None:
    async def answer(message: Message) -> None:
        await asyncio.sleep(0.01)

    assert await end_of(of(answer), timeout=0) == Finished(Token(7))


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


async def test_an_errors_observer_finishes_with_what_it_added_itself() -> None:
    async def answer(message: Message, outbox: Outbox) -> None:
        outbox.add(message.answer("before the error"))
        raise KeyError("city")

    router = of(answer)

    @router.errors()
    async def sorry(event: ErrorEvent, outbox: Outbox) -> TelegramMethod[Any]:
        outbox.add(SendMessage(chat_id=5, text="sorry"))
        return SendMessage(chat_id=5, text="again?")

    assert texts(await end_of(router)) == ["sorry", "again?"]


async def test_an_errors_observer_that_does_not_want_it_lets_it_fail() -> None:
    async def answer(message: Message) -> None:
        raise KeyError("city")

    router = of(answer)

    @router.errors(lambda event: False)
    async def sorry(event: ErrorEvent) -> None: ...

    assert isinstance(await end_of(router), Failed)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "the update cannot be read: body: json_invalid"),
        (b"[]", "the update cannot be read: body: model_type"),
        (b'{"update_id": "a secret text"}', "the update cannot be read: update_id: int_parsing"),
        (
            b'{"update_id": 1, "message": {"text": "\\ud800"}}',
            "the update cannot be read: body: json_invalid",
        ),
    ],
    ids=["truncated", "list", "fields", "half a surrogate pair"],
)
async def test_a_body_that_aiogram_cannot_read_fails_without_its_text(body: bytes, reason: str) -> None:
    assert await end_of(Router(), body) == Failed(Token(7), reason)


async def test_a_returned_upload_fails_and_says_what_to_do() -> None:
    async def answer(message: Message) -> TelegramMethod[Any]:
        return message.answer_photo(BufferedInputFile(b"bytes", "x.png"))

    end = await end_of(of(answer))
    assert isinstance(end, Failed)
    assert "await the method directly" in end.error


async def test_an_update_of_a_bot_without_a_token_here_waits() -> None:
    end = await Runs(dispatcher(Router()), {}, timeout=5).handle(lease(message(1, 5, "x")))
    assert isinstance(end, Later)


async def test_only_being_cancelled_from_outside_leaves_no_end() -> None:
    async def gives_up(message: Message) -> None:
        raise asyncio.CancelledError

    assert isinstance(await end_of(of(gives_up)), Failed)

    async def waits(message: Message) -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(end_of(of(waits)))
    await asyncio.sleep(0.01)
    cancels.cancel(task)
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancels_itself_and_waits(message: Message) -> None:
    cancel_this_task()
    await asyncio.sleep(60)


async def cancels_itself_at_its_end(message: Message) -> None:
    cancel_this_task()


async def is_cancelled_by_a_helper(message: Message) -> None:
    asyncio.get_running_loop().call_soon(cancel_this_task, asyncio.current_task())
    await asyncio.sleep(60)


def cancel_this_task(task: "asyncio.Task[Any] | None" = None) -> None:
    task = task or asyncio.current_task()
    assert task is not None
    task.cancel()


@pytest.mark.parametrize(
    "handler", [cancels_itself_and_waits, cancels_itself_at_its_end, is_cancelled_by_a_helper]
)
async def test_a_run_that_somebody_else_has_cancelled_fails(handler: Handler) -> None:
    task = asyncio.create_task(end_of(of(handler)))
    end = await task
    assert isinstance(end, Failed)
    assert end.error.startswith("CancelledError: the handler was cancelled")


class _Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), _Exits()], ids=lambda e: type(e).__name__
)
async def test_what_would_end_a_process_fails_its_update_alone(error: BaseException) -> None:
    async def answer(message: Message) -> None:
        raise error

    end = await end_of(of(answer))
    assert isinstance(end, Failed)
    assert end.error.startswith(type(error).__name__)


async def test_no_log_holds_what_people_wrote(capsys: pytest.CaptureFixture[str], caplog: Any) -> None:
    async def answer(message: Message) -> None:
        raise ValueError(message.text)

    await end_of(of(answer), message(1, 5, "my-secret-text"))
    await end_of(Router(), b'{"update_id": "my-secret-text"}')
    printed = capsys.readouterr()
    assert "my-secret-text" not in printed.out + printed.err + caplog.text
    assert "update failed" in printed.out + printed.err + caplog.text


async def test_a_callback_runs_and_answers() -> None:
    router = Router()

    @router.callback_query()
    async def pressed(query: CallbackQuery) -> TelegramMethod[Any]:
        return query.answer("ok")

    end = await end_of(router, callback(9, 5, "x"), kind="callback_query")
    assert isinstance(end, Finished)
    assert json.loads(end.outbox[0]) == {
        "method": "answerCallbackQuery",
        "params": {"callback_query_id": "9", "text": "ok"},
        "bot": 42,
    }


async def test_a_middleware_that_is_added_later_takes_part() -> None:
    async def answer(message: Message, words: list[str], dispatcher: Dispatcher) -> TelegramMethod[Any]:
        assert dispatcher is built
        return message.answer(" ".join(words))

    built = dispatcher(of(answer))
    built["words"] = ["workflow"]
    runs = Runs(built, {BotId(42): BOT}, timeout=5)
    assert texts(await runs.handle(lease(message(1, 5, "x")))) == ["workflow"]

    async def more(handler: Any, event: Any, data: dict[str, Any]) -> Any:
        return await handler(event, {**data, "words": ["middleware"]})

    built.update.outer_middleware(more)
    assert texts(await runs.handle(lease(message(1, 5, "x")))) == ["middleware"]


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
