"""The bot under fault: answers each message with its marker, and keeps a journal of what ran when.

A message `#<chat>:<n> fails` raises, and `#<chat>:<n> kills` ends the process, each time that it runs.

A line of the journal is `start|end <monotonic ns> <pid> <chat> <n>`, in one write: a kill cuts none.
"""

import asyncio
import os
import random
import time

from aiogram import Router
from aiogram.methods import TelegramMethod
from aiogram.types import Message

router = Router()
JOURNAL = os.open(os.environ["FAULTS_JOURNAL"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def note(what: str, chat: int, number: int) -> None:
    os.write(JOURNAL, f"{what} {time.monotonic_ns()} {os.getpid()} {chat} {number}\n".encode())


@router.message()
async def reply(message: Message) -> TelegramMethod[Message]:
    marker, _, trouble = (message.text or "").partition(" ")
    number = int(marker.rpartition(":")[2])
    note("start", message.chat.id, number)
    await asyncio.sleep(random.uniform(0, 0.02))
    if trouble == "kills":
        os._exit(9)
    note("end", message.chat.id, number)
    if trouble == "fails":
        raise ValueError("as it was asked to")
    return message.answer(f"#u{message.chat.id}:{number}")
