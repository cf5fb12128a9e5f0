"""`python -m pillarbox_dispatcher.trial`: whether the module of HANDLERS can be used, before anything starts.

Ends with 0, or with 2 and the line that the dispatcher would end with.
"""

import asyncio

from aiogram.fsm.storage.memory import MemoryStorage

from pillarbox import process
from pillarbox_dispatcher import handlers
from pillarbox_dispatcher.settings import HandlersSettings


async def main(settings: HandlersSettings, stop: asyncio.Event) -> None:
    module = handlers.module(settings.handlers)
    handlers.bot_defaults(module)
    handlers.dispatcher(module, MemoryStorage())


if __name__ == "__main__":
    process.run("dispatcher", HandlersSettings, main)
