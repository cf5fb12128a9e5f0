"""A bot for tests of whole processes: does what the text says, then sends it back.

RUN_NOTES names a file that gets a line `start|end <pid> <text>` for each run.
"""

import asyncio
import contextlib
import os
import time

from aiogram import Router
from aiogram.methods import SendMessage
from aiogram.types import Message

router = Router()


def note(what: str, text: str) -> None:
    with open(os.environ["RUN_NOTES"], "a", encoding="utf-8") as notes:
        notes.write(f"{what} {os.getpid()} {text}\n")


@router.message()
async def run(message: Message) -> SendMessage:
    text = message.text or ""
    what, _, seconds = text.partition(" ")
    note("start", text)
    if what == "fail":
        raise KeyError("city")
    if what == "sleep":
        await asyncio.sleep(float(seconds))
    if what == "block":
        time.sleep(float(seconds))  # noqa: ASYNC251 - that is the point
    while what == "hang":
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
    note("end", text)
    return message.answer(text)
