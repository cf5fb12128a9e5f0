"""What comes of a run, by what its handlers do."""

import json
from typing import Any

import pytest
from aiogram import Dispatcher, Router
from aiogram.dispatcher.event.bases import CancelHandler, SkipHandler
from aiogram.methods import SendMessage, TelegramMethod
from aiogram.types import CallbackQuery, ErrorEvent, Message

from pillarbox.ids import BotId, Token
from pillarbox.inbox import Failed, Finished, Later
from pillarbox_dispatcher import Outbox
from pillarbox_dispatcher.runs import Runs
from tests.support.runs import BOT, dispatcher, end_of, lease, of, texts
from tests.support.updates import callback, message


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


async def test_an_update_of_a_bot_without_a_token_here_waits() -> None:
    end = await Runs(dispatcher(Router()), {}, timeout=5).handle(lease(message(1, 5, "x")))
    assert isinstance(end, Later)


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
