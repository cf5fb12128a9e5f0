"""Handlers that only count, for both sides of the dispatch bench: it is written when they had them all.

NOOP_STATE: `read` takes the FSM state and reads its data; `write` also changes it, each time.
"""

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiogram import Router
from aiogram.fsm.context import FSMContext
from aiogram.types import Message

COUNT = int(os.environ["NOOP_COUNT"])
WARM = COUNT // 10
RESULT = Path(os.environ["NOOP_RESULT"])
STATE = os.environ.get("NOOP_STATE", "")

router = Router()
handled = 0
started = cpu_at_start = 0.0


def count() -> None:
    """Updates a second, and the process's own CPU microseconds an update."""
    global handled, started, cpu_at_start
    handled += 1
    if handled == WARM:
        started, cpu_at_start = time.perf_counter(), time.process_time()
    elif handled == COUNT:
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_at_start
        RESULT.write_text(f"{(COUNT - WARM) / seconds} {cpu / (COUNT - WARM) * 1e6}")


async def plain(message: Message) -> None:
    count()


async def reads(message: Message, state: FSMContext) -> None:
    await state.get_data()
    count()


async def writes(message: Message, state: FSMContext) -> None:
    await state.update_data(seen=message.message_id)
    count()


HANDLERS: dict[str, Callable[..., Awaitable[None]]] = {"": plain, "read": reads, "write": writes}
router.message.register(HANDLERS[STATE])
