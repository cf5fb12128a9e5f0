"""Handlers that write down when they began; `hold` waits, in the first process that gets it, for ever."""

import asyncio
import os
import time
from pathlib import Path

from aiogram import Router
from aiogram.types import Message

router = Router()


def _note(message: Message) -> None:
    with Path(os.environ["NOTED"]).open("a") as notes:
        notes.write(f"{time.monotonic()} {message.chat.id} {message.message_id} {os.getpid()}\n")


@router.message()
async def note(message: Message) -> None:
    _note(message)
    what, _, argument = (message.text or "").partition(" ")
    if what == "hold" and os.getpid() == int(argument):
        await asyncio.sleep(3600)
    if what == "sleep":
        await asyncio.sleep(float(argument))
