"""The dispatcher in the test's own process, with PostgreSQL, Valkey and a Bot API."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

import pillarbox_simulator
from pillarbox import db
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Incoming
from pillarbox.inbox.opening import opening, shared_storage_of
from pillarbox_dispatcher.app import Service
from pillarbox_dispatcher.settings import DispatcherSettings
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.valkey import ValkeyServer
from tests.support.dispatching import TOKEN, accept, free_port, inbox, incoming, until
from tests.support.servers import postgres_programs, running
from tests.support.simulator import simulator  # noqa: F401 - a fixture
from tests.support.updates import message

HEAD = """
import asyncio, os
from aiogram import F, Router
from aiogram.filters import Command, StateFilter
from aiogram.fsm.context import FSMContext
from pillarbox_dispatcher import RetryUpdate

router = Router()
ran = []
go_on = asyncio.Event()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("users_handlers", None)


def settings(postgres: str, valkey: str, **more: Any) -> DispatcherSettings:
    given = {"database_url": postgres, "redis_url": valkey, "bot_tokens": TOKEN, "handlers": "users_handlers"}
    return DispatcherSettings(**{**given, "telegram_api_base": f"http://127.0.0.1:{free_port()}", **more})


@contextlib.asynccontextmanager
async def serving(given: DispatcherSettings, handlers: str) -> AsyncIterator[Service]:
    Path("users_handlers.py").write_text(HEAD + handlers)
    stop = asyncio.Event()
    async with opening(shared_storage_of(given)) as inbox:
        service = Service(given, inbox)
        task = asyncio.create_task(service.run(stop))
        try:
            yield service
        finally:
            stop.set()
            await asyncio.wait_for(task, 20)


def users() -> Any:
    return sys.modules["users_handlers"]


def rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def nothing_left(url: str) -> bool:
    return rows(url, "SELECT (SELECT count(*) FROM updates) + (SELECT count(*) FROM outbox)") == [(0,)]


def lane(url: str, chat: int) -> list[dict[str, Any]]:
    """The envelopes that wait for a chat, oldest first."""
    with redis.Redis.from_url(url) as client:
        found: Any = client.lrange(f"pillarbox:outbound:lane:42:interactive:{chat}", 0, -1)
    return [json.loads(element.partition(b"\n")[2]) for element in found]


async def test_answers_reach_the_lane_of_their_chat_in_order(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    handlers = """
@router.message()
async def run(message, outbox):
    outbox.add(message.answer(message.text + " one"))
    await asyncio.sleep(0)
    return message.answer(message.text + " two")
"""
    async with inbox(postgres_url) as storage, serving(settings(postgres_url, valkey_url), handlers):
        for n in range(1, 61):
            await accept(storage, [incoming(n, n % 3, str(n))])
        await until(lambda: nothing_left(postgres_url))
    for chat in range(3):
        mine = [n for n in range(1, 61) if n % 3 == chat]
        texts = [envelope["params"]["text"] for envelope in lane(valkey_url, chat)]
        assert texts == [f"{n} {word}" for n in mine for word in ("one", "two")]


async def test_direct_calls_are_direct_and_their_errors_are_aiograms(
    folder: Path,
    postgres_url: str,
    valkey_url: str,
    simulator: pillarbox_simulator.Running,  # noqa: F811
) -> None:
    handlers = """
@router.message(Command("photo"))
async def photo(message):
    await message.bot.send_photo(chat_id="nonsense", photo="")

@router.message()
async def run(message):
    sent = await message.answer("direct")
    ran.append(sent.message_id)
"""
    given = settings(postgres_url, valkey_url, telegram_api_base=simulator.url)
    async with inbox(postgres_url) as storage, serving(given, handlers):
        await accept(storage, [incoming(1, 5, "hi"), incoming(2, 6, "/photo")])
        await until(lambda: nothing_left(postgres_url))
        assert [type(number) for number in users().ran] == [int]
    ((error,),) = rows(postgres_url, "SELECT error FROM failed")
    assert error.startswith("TelegramBadRequest: ")
    assert error.endswith(" at users_handlers.py:14")
    assert lane(valkey_url, 5) == []


async def test_a_state_is_there_for_the_next_update(folder: Path, postgres_url: str, valkey_url: str) -> None:
    handlers = """
@router.message(StateFilter("city"))
async def city(message, state):
    ran.append(("city", message.text, await state.get_data()))
    await state.clear()

@router.message()
async def run(message, state):
    ran.append(("first", message.text))
    await state.set_state("city")
    await state.update_data(asked=message.text)
"""
    async with inbox(postgres_url) as storage, serving(settings(postgres_url, valkey_url), handlers):
        await accept(storage, [incoming(n, 5, text) for n, text in enumerate(("a", "b", "c"), 1)])
        await until(lambda: nothing_left(postgres_url))
        assert users().ran == [("first", "a"), ("city", "b", {"asked": "a"}), ("first", "c")]


async def test_startup_waits_for_the_bot_api_and_readiness_says_so(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    handlers = """
async def started(bot, bots):
    ran.append(await bot.get_me())

async def stopped():
    ran.append("stopped")

def setup(dispatcher):
    dispatcher.startup.register(started)
    dispatcher.shutdown.register(stopped)
"""
    port = free_port()
    given = settings(postgres_url, valkey_url, telegram_api_base=f"http://127.0.0.1:{port}")
    async with serving(given, handlers) as service:
        await asyncio.sleep(0.3)
        assert await service.probes().failing() == {"handlers": "NotStarted"}
        async with pillarbox_simulator.running(port=port):
            await until(lambda: bool(users().ran))
            await asyncio.sleep(0.1)
            assert await service.probes().failing() == {}
        module = users()
    assert module.ran[0].is_bot
    assert module.ran[1:] == ["stopped"]


async def test_postgresql_goes_away_in_the_middle_and_nothing_is_lost_or_run_twice(
    folder: Path, tmp_path: Path, valkey_url: str
) -> None:
    handlers = """
@router.message()
async def run(message, outbox):
    ran.append(message.text)
    outbox.add(message.answer(message.text))
    await go_on.wait()
"""
    with running(PostgresServer(tmp_path / "postgres", programs=postgres_programs())) as server:
        db.migrate(server.url)
        async with inbox(server.url) as storage:
            await accept(storage, [incoming(n, n, str(n)) for n in range(1, 6)])
        async with serving(settings(server.url, valkey_url), handlers) as service:
            await until(lambda: len(users().ran) == 5)
            server.kill()
            users().go_on.set()
            assert "database" in await service.probes().failing()
            await asyncio.sleep(0.5)
            server.start()
            await until(lambda: nothing_left(server.url))
            assert sorted(users().ran) == ["1", "2", "3", "4", "5"]
        assert [lane(valkey_url, n)[0]["params"]["text"] for n in range(1, 6)] == ["1", "2", "3", "4", "5"]
        assert rows(server.url, "SELECT count(*) FROM failed") == [(0,)]


async def test_redis_goes_away_and_only_answers_wait(folder: Path, tmp_path: Path, postgres_url: str) -> None:
    handlers = """
@router.message()
async def run(message, state):
    ran.append(message.text)
    await state.update_data(seen=message.text)
    return message.answer(message.text)
"""
    with running(ValkeyServer(tmp_path / "valkey")) as server:
        async with inbox(postgres_url) as storage, serving(settings(postgres_url, server.url), handlers):
            await accept(storage, [incoming(1, 1, "before")])
            await until(lambda: nothing_left(postgres_url))
            server.kill()
            await accept(storage, [incoming(2, 2, "while")])
            await until(lambda: rows(postgres_url, "SELECT count(*) FROM outbox") == [(1,)])
            assert users().ran == ["before", "while"]
            server.start()
            await until(lambda: nothing_left(postgres_url))
        assert [lane(server.url, n)[0]["params"]["text"] for n in (1, 2)] == ["before", "while"]
    assert rows(postgres_url, "SELECT count(*) FROM failed") == [(0,)]
    assert rows(postgres_url, "SELECT count(*) FROM fsm") == [(2,)]


async def test_two_lanes_that_share_a_state_lose_no_step_of_it(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    """Chat 7 and user 7: aiogram has one key for a private chat and its person's inline queries."""
    handlers = """
async def count(what, state, outbox):
    ran.append(what)
    seen = (await state.get_data()).get("seen", 0)
    await asyncio.sleep(0.02)
    await state.update_data(seen=seen + 1)
    return SendMessage(chat_id=7, text=what)

@router.message()
async def run(message, state, outbox):
    return await count(message.text, state, outbox)

@router.inline_query()
async def query(inline_query, state, outbox):
    return await count(inline_query.query, state, outbox)
"""
    handlers = "from aiogram.methods import SendMessage\n" + handlers
    asked = {"from": {"id": 7, "is_bot": False, "first_name": "A"}, "offset": ""}
    updates = []
    for n in range(1, 21):
        inline = {"update_id": 100 + n, "inline_query": {"id": str(n), "query": f"q{n}", **asked}}
        body = json.dumps(inline).encode()
        updates += [
            incoming(n, 7, f"m{n}"),
            Incoming(BotId(42), UpdateId(100 + n), "inline_query", "user:7", body, None, 7),
        ]
    async with inbox(postgres_url) as storage, serving(settings(postgres_url, valkey_url), handlers):
        await accept(storage, updates)
        await until(lambda: nothing_left(postgres_url), 40)
        ran = users().ran
    assert rows(postgres_url, "SELECT data FROM fsm") == [(b'{"seen": 40}',)]
    assert len(ran) > 40
    texts = [envelope["params"]["text"] for envelope in lane(valkey_url, 7)]
    assert sorted(texts) == sorted([f"m{n}" for n in range(1, 21)] + [f"q{n}" for n in range(1, 21)])
    assert rows(postgres_url, "SELECT count(*) FROM failed") == [(0,)]


async def test_a_blip_in_a_handler_is_tried_again_and_a_lasting_one_fails_with_its_last_error(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    handlers = """
@router.message()
async def run(message, state):
    ran.append(message.text)
    await state.update_data(tries=1)
    if message.text == "lasting" or ran.count("blip") < 3:
        raise ConnectionResetError(str(ran.count(message.text)))
    return message.answer(message.text)
"""
    given = settings(
        postgres_url, valkey_url, retry_on="ConnectionError", retry_first=0.05, retry_most=0.1, retry_times=3
    )
    async with inbox(postgres_url) as storage, serving(given, handlers):
        await accept(storage, [incoming(1, 1, "blip"), incoming(2, 1, "next"), incoming(3, 2, "lasting")])
        await until(lambda: nothing_left(postgres_url))
        assert sorted(users().ran) == ["blip"] * 3 + ["lasting"] * 4 + ["next"]
    ((update_id, runs, error),) = rows(postgres_url, "SELECT update_id, runs, error FROM failed")
    assert (update_id, runs) == (3, 1)
    assert error.startswith("ConnectionResetError: 4 at users_handlers.py:")
    assert [envelope["params"]["text"] for envelope in lane(valkey_url, 1)] == ["blip", "next"]


async def test_with_answers_in_the_outbox_nothing_leaves_before_the_end(
    folder: Path,
    postgres_url: str,
    valkey_url: str,
    simulator: pillarbox_simulator.Running,  # noqa: F811
) -> None:
    handlers = """
@router.message()
async def run(message):
    sent = await message.answer(message.text + " one")
    await message.answer(message.text + " two")
    ran.append((await message.bot.get_me()).id)
    if message.text == "bad":
        sent.message_id
"""
    given = settings(postgres_url, valkey_url, telegram_api_base=simulator.url, answers="outbox")
    async with inbox(postgres_url) as storage, serving(given, handlers):
        await accept(storage, [incoming(1, 5, "good"), incoming(2, 5, "bad")])
        await until(lambda: nothing_left(postgres_url))
        assert users().ran == [42, 42]
    texts = [envelope["params"]["text"] for envelope in lane(valkey_url, 5)]
    assert texts == ["good one", "good two"]
    ((error,),) = rows(postgres_url, "SELECT error FROM failed")
    assert error.startswith("AnswerIsQueued: sendMessage waits in the outbox")


async def test_more_handlers_that_never_return_than_there_are_places(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    handlers = """
@router.message()
async def run(message):
    ran.append(message.text)
    if message.text == "never":
        await asyncio.Event().wait()
"""
    given = settings(postgres_url, valkey_url, handler_timeout=0.5)
    async with inbox(postgres_url) as storage, serving(given, handlers):
        await accept(storage, [incoming(n, n, "never") for n in range(1, 65)])
        await until(lambda: len(users().ran) == 64)
        await accept(storage, [incoming(100, 100, "good")])
        await until(lambda: nothing_left(postgres_url))
        assert users().ran[-1] == "good"
    errors = rows(postgres_url, "SELECT DISTINCT split_part(error, ':', 1), count(*) FROM failed GROUP BY 1")
    assert errors == [("HandlerTimeout", 64)]


async def test_a_row_that_is_no_message_holds_up_nobody(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for row, body in ((1, b"\xff"), (2, b'{"method":"sendMessage","params":{"chat_id":7,"text":"hi"}}')):
            connection.execute(
                "INSERT INTO outbox (row_id, n, bot_id, lane, body) VALUES (%s, 0, 42, 'chat:7', %s)",
                (row, body),
            )
    async with serving(settings(postgres_url, valkey_url), ""):
        await until(lambda: nothing_left(postgres_url))
    assert [envelope["params"]["text"] for envelope in lane(valkey_url, 7)] == ["hi"]
    with redis.Redis.from_url(valkey_url) as client:
        assert client.zcard("pillarbox:outbound:dead:42") == 1


async def test_a_body_that_nobody_can_read_fails_and_the_lane_goes_on(
    folder: Path, postgres_url: str, valkey_url: str
) -> None:
    handlers = """
@router.message()
async def run(message):
    ran.append(message.text)
"""
    bad = message(1, 5, "x").replace(b'"date": 1700000000', b'"date": "soon"')
    async with inbox(postgres_url) as storage, serving(settings(postgres_url, valkey_url), handlers):
        await accept(storage, [incoming(1, 5, "", body=bad), incoming(2, 5, "next")])
        await until(lambda: nothing_left(postgres_url))
        assert users().ran == ["next"]
    ((error,),) = rows(postgres_url, "SELECT error FROM failed")
    assert error.startswith("the update cannot be read: message.date: datetime")
