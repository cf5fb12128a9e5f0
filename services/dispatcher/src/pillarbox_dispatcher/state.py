"""FSM state in Redis, until the inbox keeps it and `finish` writes it (DESIGN, Handlers).

aiogram reads the state before every update. What one pass of the loop asks for is read by one MGET; and while
Redis is away, the updates wait and none of them fails.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from aiogram import Dispatcher, Router
from aiogram.dispatcher.event.handler import HandlerObject
from aiogram.dispatcher.middlewares.error import ErrorsMiddleware
from aiogram.dispatcher.middlewares.user_context import UserContextMiddleware
from aiogram.fsm.middleware import FSMContextMiddleware
from aiogram.fsm.storage.base import DefaultKeyBuilder, StateType, StorageKey
from aiogram.fsm.storage.redis import RedisStorage
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError

from pillarbox.backoff import Backoff
from pillarbox.settings import RedisSettings
from pillarbox_dispatcher.handlers import FailedOutbox
from pillarbox_dispatcher.retry import StateUnavailable

PREFIX = "pillarbox:fsm"
STATE = {"state", "raw_state", "fsm_storage"}
OURS = (ErrorsMiddleware, UserContextMiddleware, FSMContextMiddleware, FailedOutbox)
AGAIN = 2.0

T = TypeVar("T")
Answer = asyncio.Future[bytes | None]


class StateStorage(RedisStorage):
    """Holds a read back for `patience` seconds while Redis is away; then the update is tried again later."""

    def __init__(self, redis: Redis, patience: float = 10.0) -> None:
        builder = DefaultKeyBuilder(
            prefix=PREFIX, with_bot_id=True, with_business_connection_id=True, with_destiny=True
        )
        super().__init__(redis, key_builder=builder)
        self._patience = patience
        self._asked: list[tuple[str, Answer]] = []
        self._reads: set[asyncio.Task[None]] = set()

    async def get_state(self, key: StorageKey) -> str | None:
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        if not self._asked:
            loop.call_soon(self._read_soon)
        self._asked.append((self.key_builder.build(key, "state"), answer))
        value = await answer
        return None if value is None else value.decode()

    async def set_state(self, key: StorageKey, state: StateType = None) -> None:
        await _or_later(super().set_state(key, state))

    async def set_data(self, key: StorageKey, data: Mapping[str, Any]) -> None:
        await _or_later(super().set_data(key, data))

    async def get_data(self, key: StorageKey) -> dict[str, Any]:
        return await _or_later(super().get_data(key))

    async def close(self) -> None:
        """The connection is the process's own, and closed by it."""

    def _read_soon(self) -> None:
        asked, self._asked = self._asked, []
        task = asyncio.ensure_future(self._read(asked))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _read(self, asked: list[tuple[str, Answer]]) -> None:
        try:
            values = await self._patiently([key for key, _ in asked])
        except Exception as error:
            away = isinstance(error, RedisError | OSError)
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(StateUnavailable(AGAIN) if away else error)
            return
        for (_, answer), value in zip(asked, values, strict=True):
            if not answer.done():
                answer.set_result(value)

    async def _patiently(self, keys: list[str]) -> list[Any]:
        backoff, loop = Backoff(most=1.0), asyncio.get_running_loop()
        until = loop.time() + self._patience
        while True:
            try:
                return await self.redis.mget(keys)
            except (RedisError, OSError):
                if loop.time() >= until:
                    raise
            await asyncio.sleep(backoff.delay())


async def _or_later(call: Awaitable[T]) -> T:
    try:
        return await call
    except (RedisError, OSError) as error:
        raise StateUnavailable(AGAIN) from error


def leave_out_unread(dispatcher: Dispatcher) -> bool:
    """Stops the reading of states where no handler, filter or middleware can see them; whether it did.

    Updates of such a bot need no Redis, and a fourth less time.
    """
    if any(_sees_state(router, dispatcher) for router in dispatcher.chain_tail):
        return False
    dispatcher.update.outer_middleware.unregister(dispatcher.fsm)
    return True


def _sees_state(router: Router, dispatcher: Dispatcher) -> bool:
    for observer in router.observers.values():
        if any(type(one) not in OURS for one in (*observer.outer_middleware, *observer.middleware)):
            return True
        for handler in (*observer.handlers, observer._handler):
            if handler.callback != dispatcher._listen_update and _asks_for_state(handler):
                return True
    return False


def _asks_for_state(handler: HandlerObject) -> bool:
    callables = (handler, *(handler.filters or ()))
    return any(one.varkw or one.params & STATE for one in callables)


def connect(settings: RedisSettings) -> Redis:
    """Every call of this store may be made twice, so a lost connection is tried again at once."""
    return Redis.from_url(
        settings.redis_url.get_secret_value(),
        socket_timeout=settings.redis_timeout,
        socket_connect_timeout=settings.redis_timeout,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 1),
        retry_on_error=[ConnectionError],
    )


def patience(handler_timeout: float) -> float:
    """Waiting for Redis must not use up the handlers' own time."""
    return min(10.0, handler_timeout / 2) if handler_timeout else 10.0
