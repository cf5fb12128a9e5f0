"""What a run that goes wrong is kept with, and what it cannot take with it."""

import asyncio
import json
import re
import sys
from typing import Any

import pytest
from aiogram import Router
from aiogram.methods import TelegramMethod
from aiogram.types import BufferedInputFile, Message

from pillarbox.ids import Token
from pillarbox.inbox import Failed, Finished
from pillarbox_dispatcher import Outbox, cancels
from tests.support.runs import Handler, end_of, of
from tests.support.updates import message

HERE = "test_dispatcher_errors.py"


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
