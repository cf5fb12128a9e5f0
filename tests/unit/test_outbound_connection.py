"""How Redis is connected to: nothing is repeated, and every answer is bytes, whatever the URL asks for."""

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr
from redis.exceptions import OutOfMemoryError, ResponseError

from pillarbox.errors import QueueUnavailable
from pillarbox.outbound.connection import connect, passing
from pillarbox.settings import RedisSettings


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1/0",
        "redis://127.0.0.1:1?socket_timeout=1&decode_responses=true&retry_on_timeout=true",
        "rediss://127.0.0.1:1/0",
        "unix:///nowhere/redis.sock",
    ],
)
@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_no_url_changes_what_loses_messages(url: str, blocking: bool) -> None:
    client: Any = connect(RedisSettings(redis_url=SecretStr(url), redis_timeout=3), blocking=blocking)
    connection = client.connection_pool.make_connection()
    assert connection.retry.get_retries() == 0
    assert connection.socket_timeout == 3
    assert connection.encoder.decode_responses is False
    with pytest.raises(QueueUnavailable), passing():
        await client.ping()
    await client.aclose()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(104, "a secret"), "Redis: ConnectionResetError"),
        (OutOfMemoryError("OOM command not allowed"), "Redis: OutOfMemoryError OOM"),
        (ResponseError("a secret"), "Redis: ResponseError"),
        (
            ResponseError("user_script:9: oops script: on @user_script:9."),
            "Redis: ResponseError user_script:9: oops",
        ),
    ],
)
def test_errors_say_what_and_never_a_value(error: Exception, text: str) -> None:
    with pytest.raises(QueueUnavailable) as passed, passing():
        raise error
    assert str(passed.value).startswith(text)
    assert "secret" not in str(passed.value)


async def test_a_cancel_is_heard_whenever_it_comes(valkey_url: str) -> None:
    client = connect(RedisSettings(redis_url=SecretStr(valkey_url)))

    async def ping() -> None:
        with passing():
            await client.ping()

    for steps in range(100):
        task = asyncio.ensure_future(ping())
        for _ in range(steps):
            await asyncio.sleep(0)
        if not task.cancel():
            break
        with pytest.raises(asyncio.CancelledError):
            await task
    assert steps > 1
    await client.aclose()
