"""Connections to Redis. No call is repeated behind our back: that loses or doubles messages."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from redis.asyncio import Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, RedisError
from redis.maint_notifications import MaintNotificationsConfig

from pillarbox.errors import QueueFull, QueueUnavailable
from pillarbox.outbound.wire import Address, Wire
from pillarbox.settings import RedisSettings


class Client(Redis):
    """With a connection of its own for scripts, where no TLS is asked for."""

    wire: Wire | None = None

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        if self.wire is not None:
            self.wire.close()
        await super().aclose(close_connection_pool)


def connect(settings: RedisSettings, *, blocking: bool = False) -> Client:
    """A client that speaks bytes. A blocking one has a single connection, so that its id can be ended."""
    made = Client.from_url(
        settings.redis_url.get_secret_value(),
        single_connection_client=blocking,
        maint_notifications_config=MaintNotificationsConfig(enabled=False),
        max_connections=16,
    )
    client = cast("Client", made)
    pool = client.connection_pool
    pool.connection_kwargs |= _ours(settings.redis_timeout)
    if not issubclass(pool.connection_class, SSLConnection):
        client.wire = Wire(Address(pool.connection_kwargs), settings.redis_timeout)
    return client


def _ours(timeout: float) -> dict[str, Any]:
    """What no query in the URL may change: each of these loses messages when it is set otherwise."""
    return {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "decode_responses": False,
        "health_check_interval": 0,
    }


@contextmanager
def passing() -> Iterator[None]:
    """What Redis and the network raise, as QueueUnavailable with its type and the answer's first word.

    A task that was cancelled in the block is cancelled, also where the call has ended all the same.
    """
    before = _cancels()
    try:
        yield
    except (RedisError, OSError) as error:
        _heed(before)
        kind = QueueFull if isinstance(error, OutOfMemoryError) else QueueUnavailable
        raise kind(f"Redis: {type(error).__name__}{_detail(error)}") from None
    _heed(before)


def _cancels() -> int:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop: nobody can cancel
        return 0
    return task.cancelling() if task else 0


def _heed(before: int) -> None:
    """redis-py sends in `asyncio.wait_for`, which before Python 3.12 drops a cancel that meets its end."""
    if _cancels() > before:
        raise asyncio.CancelledError


def _detail(error: Exception) -> str:
    """The word that an answer begins with, such as OOM; of a script that broke, where. Never a value."""
    place = re.search(r"user_script:\d+: [^\n\"']{1,80}", str(error))
    if place:
        return f" {place[0]}"
    word = str(error).partition(" ")[0]
    return f" {word}" if word.isupper() and word.isalpha() else ""
