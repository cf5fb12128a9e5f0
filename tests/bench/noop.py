"""A handler that only counts, for both sides of the dispatch bench: it writes when it had them all."""

import os
import time
from pathlib import Path

from aiogram import Router
from aiogram.types import Message

COUNT = int(os.environ["NOOP_COUNT"])
WARM = COUNT // 10
RESULT = Path(os.environ["NOOP_RESULT"])

router = Router()
handled = 0
started = 0.0


@router.message()
async def count(message: Message) -> None:
    global handled, started
    handled += 1
    if handled == WARM:
        started = time.perf_counter()
    elif handled == COUNT:
        RESULT.write_text(str((COUNT - WARM) / (time.perf_counter() - started)))
