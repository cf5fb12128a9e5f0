"""The connection that scripts are called by: order, errors, what was cut off, and its way back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr
from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.connection import parse_url

from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.connection import connect
from pillarbox.outbound.scripts import Scripts
from pillarbox.outbound.wire import Address, Wire
from pillarbox.settings import RedisSettings

NAME = "wire-under-test"


@pytest.fixture
async def wire(valkey_url: str) -> AsyncIterator[Wire]:
    wire = Wire(Address(parse_url(valkey_url)), 5)
    await wire.call("CLIENT", "SETNAME", NAME)
    yield wire
    wire.close()


async def kill(valkey_url: str) -> None:
    async with Redis.from_url(valkey_url) as redis:
        (address,) = [client["addr"] for client in await redis.client_list() if client["name"] == NAME]
        await redis.client_kill(address)


async def test_calls_at_once_get_each_its_own_answer(wire: Wire) -> None:
    answers = await asyncio.gather(*(wire.call("ECHO", f"é{number}".encode()) for number in range(300)))
    assert answers == [f"é{number}".encode() for number in range(300)]


async def test_large_calls_and_answers(wire: Wire) -> None:
    body = bytes(range(256)) * (1 << 15)
    assert list(await asyncio.gather(wire.call("ECHO", body), wire.call("PING"))) == [body, b"PONG"]


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        (("NOTHING",), exceptions.ResponseError),
        (("EVALSHA", "0" * 40, 0), exceptions.NoScriptError),
        (("AUTH", "nobody", "wrong"), exceptions.AuthenticationError),
    ],
)
async def test_an_error_is_raised_for_its_own_call(
    wire: Wire, parts: tuple[str | int, ...], error: type[Exception]
) -> None:
    answers = await asyncio.gather(wire.call(*parts), wire.call("PING"), return_exceptions=True)
    assert isinstance(answers[0], error)
    assert answers[1] == b"PONG"


async def test_who_is_cancelled_leaves_the_others_their_answers(wire: Wire) -> None:
    first = asyncio.create_task(wire.call("ECHO", "first"))
    second = asyncio.create_task(wire.call("ECHO", "second"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == b"second"
    assert await wire.call("ECHO", "third") == b"third"


@pytest.mark.parametrize("part", ["half of a pair: \ud800", None])
async def test_what_cannot_be_written_leaves_the_others_their_answers(wire: Wire, part: Any) -> None:
    with pytest.raises((UnicodeEncodeError, TypeError)):
        await wire.call("ECHO", part)
    assert await wire.call("ECHO", "next") == b"next"


async def test_a_connection_that_was_ended_fails_what_waits_and_is_made_again(
    wire: Wire, valkey_url: str
) -> None:
    waiting = asyncio.create_task(wire.call("BLPOP", "nothing", 0))
    await asyncio.sleep(0.05)
    await kill(valkey_url)
    with pytest.raises(exceptions.ConnectionError):
        await waiting
    assert await wire.call("PING") == b"PONG"


async def test_a_connection_that_was_ended_while_nobody_waited_is_made_again(
    wire: Wire, valkey_url: str
) -> None:
    await kill(valkey_url)
    await asyncio.sleep(0.05)
    assert await wire.call("PING") == b"PONG"


@asynccontextmanager
async def serving(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
    options: Mapping[str, Any] | None = None,
) -> AsyncIterator[Wire]:
    """A server that is no Redis."""
    held: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        answer(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire = Wire(Address({"host": "127.0.0.1", "port": port, **(options or {})}), 0.2)
    try:
        yield wire
    finally:
        wire.close()
        for writer in held:
            writer.close()
        server.close()
        await server.wait_closed()


async def test_a_silent_server_is_not_waited_for() -> None:
    async with serving(lambda reader, writer: None) as wire:
        calls = await asyncio.gather(wire.call("PING"), wire.call("PING"), return_exceptions=True)
        assert isinstance(calls[0], exceptions.TimeoutError)
        assert isinstance(calls[1], exceptions.TimeoutError | exceptions.ConnectionError)


async def test_many_calls_wait_for_one_connection_no_longer_than_one() -> None:
    async with serving(lambda reader, writer: None, {"password": "secret"}) as wire:
        calls = [wire.call("PING") for _ in range(10)]
        async with asyncio.timeout(1):
            answers = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(answer, exceptions.RedisError | OSError) for answer in answers)


async def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    broken: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    async with serving(lambda reader, writer: writer.write(b"+PONG\r\n+PONG\r\n")) as wire:
        session = await wire.session()
        await asyncio.sleep(0.05)
        assert session.lost
    assert broken == []


async def test_what_is_no_answer_of_redis_ends_the_connection() -> None:
    async with serving(lambda reader, writer: writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as wire:
        with pytest.raises(exceptions.ConnectionError):
            await wire.call("PING")


async def test_where_nobody_listens(valkey_url: str) -> None:
    redis = connect(RedisSettings(redis_url=SecretStr("redis://127.0.0.1:1/0")))
    with pytest.raises(QueueUnavailable):
        await Scripts(redis, "q").call("lists", "{}")
    await redis.aclose()


async def test_a_script_that_redis_forgot_is_told_again(valkey_url: str) -> None:
    redis = connect(RedisSettings(redis_url=SecretStr(valkey_url)))
    scripts = Scripts(redis, "q")
    assert redis.wire is not None
    for _ in range(2):
        await redis.script_flush()
        assert await scripts.call("lease", "look", "q:lease", "nobody") == 0
    await redis.aclose()


def test_tls_is_left_to_redis_py() -> None:
    assert connect(RedisSettings(redis_url=SecretStr("rediss://localhost/0"))).wire is None


def test_what_redis_wants_to_hear_first() -> None:
    def greetings(url: str) -> list[tuple[str | bytes | int | float, ...]]:
        return Address(parse_url(url)).greetings

    assert greetings("redis://h") == []
    assert greetings("redis://:secret@h/2") == [("AUTH", "secret"), ("SELECT", 2)]
    assert greetings("redis://ann:secret@h") == [("AUTH", "ann", "secret")]
    assert greetings("unix:///run/redis.sock?db=1") == [("SELECT", 1)]
