"""A dispatcher over a real inbox: in this process, or as its own."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Accepted, Incoming
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings
from tests.support.updates import message

TOKEN = "42:" + "a" * 35


def incoming(
    update_id: int, chat_id: int, text: str, *, bot_id: int = 42, body: bytes | None = None
) -> Incoming:
    return Incoming(
        bot_id=BotId(bot_id),
        update_id=UpdateId(update_id),
        kind="message",
        lane=f"chat:{chat_id}",
        body=body if body is not None else message(update_id, chat_id, text),
        chat_id=chat_id,
        user_id=chat_id,
    )


@contextlib.asynccontextmanager
async def inbox(url: str, **more: Any) -> AsyncIterator[PostgresStorage]:
    storage = PostgresStorage(InboxSettings(database_url=url, **more))
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def accept(storage: PostgresStorage, updates: Sequence[Incoming]) -> None:
    assert set(await storage.accept(updates)) == {Accepted.NEW}


async def until(reached: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not reached():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.02)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


BOT = """
import asyncio, os, signal, time
from aiogram import F, Router
from pillarbox_dispatcher import RetryUpdate

router = Router()


def note(what, message):
    words = (what, message.chat.id, message.text.replace(" ", "_"), os.getpid(), time.time())
    with open("events", "a") as events:
        print(*words, file=events)


@router.message()
async def run(message, outbox):
    note("start", message)
    what, _, seconds = message.text.partition(" ")
    if what == "block":
        time.sleep(float(seconds))
    elif what == "sleep":
        await asyncio.sleep(float(seconds))
    while what == "stubborn":
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    note("end", message)
    outbox.add(message.answer(message.text))
"""


class Process:
    """`python -m pillarbox_dispatcher` in a folder with the user's module `bot`."""

    def __init__(self, folder: Path, database_url: str, redis_url: str, **more: Any) -> None:
        if not (folder / "bot.py").exists():
            (folder / "bot.py").write_text(BOT)
        self.port = free_port()
        self.log = folder / f"dispatcher-{self.port}.log"
        settings = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "BOT_TOKENS": TOKEN,
            "HANDLERS": "bot",
            "DISPATCHER_HOST": "127.0.0.1",
            "DISPATCHER_PORT": self.port,
            "LOG_FORMAT": "json",
            **more,
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pillarbox_dispatcher"],
                cwd=folder,
                env=os.environ | {name: str(value) for name, value in settings.items()},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self.pid = self._process.pid

    async def ready(self, seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds), aiohttp.ClientSession() as client:
            while not await self._is_ready(client):
                assert self._process.poll() is None, self.log.read_text()
                await asyncio.sleep(0.05)

    async def _is_ready(self, client: aiohttp.ClientSession) -> bool:
        try:
            async with client.get(f"http://127.0.0.1:{self.port}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def exit_code(self, seconds: float = 20.0) -> int:
        await until(lambda: not self.alive, seconds)
        return self._process.wait()

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def processes() -> Iterator[list[Process]]:
    """Whatever the test put into the list is killed at its end."""
    started: list[Process] = []
    try:
        yield started
    finally:
        for process in started:
            process.end()


@dataclass(frozen=True)
class Event:
    """What BOT noted: `start` or `end` of a run, of the update with this text."""

    what: str
    chat: int
    text: str
    pid: int
    at: float


def events(folder: Path, what: str | None = None) -> list[Event]:
    noted = folder / "events"
    lines = noted.read_text().splitlines() if noted.exists() else []
    words = (line.split() for line in lines)
    found = [Event(w, int(chat), text, int(pid), float(at)) for w, chat, text, pid, at in words]
    return [event for event in found if what in (None, event.what)]
