"""The yardstick of the dispatch bench: a loop of `feed_update` from raw bytes, and nothing else."""

import gc
import os
import sys

import uvloop
from aiogram import Bot, Dispatcher
from aiogram.types import Update

from tests.bench import noop
from tests.support.updates import message


async def main(bodies: list[bytes]) -> None:
    bot = Bot(os.environ["BOT_TOKENS"])
    dispatcher = Dispatcher()
    dispatcher.include_router(noop.router)
    gc.collect()
    gc.freeze()
    for body in bodies:
        await dispatcher.feed_update(bot, Update.model_validate_json(body, context={"bot": bot}))


if __name__ == "__main__":
    chats, text = int(sys.argv[1]), sys.argv[2]
    uvloop.run(main([message(n, n % chats, text) for n in range(1, noop.COUNT + 1)]))
