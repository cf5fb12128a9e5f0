"""The queue for the blocking client. No `await` in here ever gives up control."""

from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from pillarbox.outbound.connection import passing
from pillarbox.outbound.scripts import PEOPLE, source
from pillarbox.settings import RedisSettings


class BlockingScripts:
    """Scripts of what people do; every one raises QueueUnavailable, and none is sent twice."""

    def __init__(self, settings: RedisSettings) -> None:
        timeout = settings.redis_timeout
        self._queue = settings.redis_messages_key
        self._redis = Redis.from_url(settings.redis_url.get_secret_value())
        self._redis.connection_pool.connection_kwargs |= {
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            "decode_responses": False,
            "health_check_interval": 0,
        }
        self._scripts = {name: self._redis.register_script(source(name)) for name in PEOPLE}

    async def call(self, name: str, *args: str | bytes | int) -> Any:
        with passing():
            return self._scripts[name](keys=[self._queue], args=list(args))

    async def close(self) -> None:
        self._redis.close()
