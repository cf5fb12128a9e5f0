"""The yardstick of the dispatch bench: a loop of `feed_update` from raw bytes, and nothing else.

With the URL of a Redis, 64 such loops that share the updates, and aiogram's own FSM storage in there: what a
bot has whose states are to outlive its process.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Iterator

import uvloop
from aiogram import Bot, Dispatcher
from aiogram.fsm.storage.redis import RedisStorage
from aiogram.types import Update

from tests.bench import noop
from tests.support.updates import message

AT_ONCE = 64


async def feed(dispatcher: Dispatcher, bot: Bot, bodies: Iterator[bytes]) -> None:
    for body in bodies:
        await dispatcher.feed_update(bot, Update.model_validate_json(body, context={"bot": bot}))


async def main(bodies: list[bytes], redis_url: str | None) -> None:
    bot = Bot(os.environ["BOT_TOKENS"])
    storage = RedisStorage.from_url(redis_url) if redis_url else None
    dispatcher = Dispatcher(storage=storage)
    dispatcher.include_router(noop.router)
    gc.collect()
    gc.freeze()
    left = iter(bodies)
    await asyncio.gather(*(feed(dispatcher, bot, left) for _ in range(AT_ONCE if storage else 1)))
    if storage is not None:
        await storage.close()


if __name__ == "__main__":
    chats, text = int(sys.argv[1]), sys.argv[2]
    redis_url = sys.argv[3] if len(sys.argv) > 3 else None
    uvloop.run(main([message(n, n % chats, text) for n in range(1, noop.COUNT + 1)], redis_url))
