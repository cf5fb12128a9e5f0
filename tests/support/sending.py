"""Senders as processes of their own, so that they can be killed, paused and stopped."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.simulator import BOT_ID, TOKEN

QUEUE = "pillarbox:outbound"
LIMITS = ("LIMIT_CHAT", "LIMIT_GROUP", "LIMIT_BULK", "LIMIT_PAID", "LIMIT_BOT")
UNLIMITED = dict.fromkeys(LIMITS, "0")
OUT_OF_THE_WAY = dict.fromkeys(LIMITS, "100000")
"""In force, and never reached."""


def message(chat: int, text: str, **more: Any) -> str:
    return json.dumps({"method": "sendMessage", "params": {"chat_id": chat, "text": text}, **more})


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def until(true: Callable[[], Awaitable[Any]], seconds: float = 20.0, step: float = 0.05) -> Any:
    """The first answer that is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = await true()
        if answer:
            return answer
        await asyncio.sleep(step)
    raise AssertionError(f"not within {seconds} s")


class SenderProcess:
    """One sender, without limits unless they are given; its log is in `folder`."""

    def __init__(self, redis_url: str, api: str, folder: Path, name: str, **settings: str) -> None:
        self.name = name
        self.port = free_port()
        self.log = folder / f"{name}.log"
        self._environment = {
            "PATH": os.environ["PATH"],
            "REDIS_URL": redis_url,
            "BOT_TOKENS": TOKEN,
            "TELEGRAM_API_BASE": api,
            "WORKER_NAME": name,
            "SENDER_HOST": "127.0.0.1",
            "SENDER_PORT": str(self.port),
            **UNLIMITED,
            **settings,
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "pillarbox_sender", env=self._environment, stderr=log, stdout=log
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self, seconds: float = 30.0) -> int:
        """The exit code."""
        assert self._process is not None
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
        await self.ended()

    async def stop(self, seconds: float = 30.0) -> int:
        self.send_signal(signal.SIGTERM)
        return await self.ended(seconds)

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self.send_signal(signal.SIGCONT)
            await self.kill()


@asynccontextmanager
async def senders(processes: Iterable[SenderProcess]) -> AsyncIterator[list[SenderProcess]]:
    """Started together, and certainly ended."""
    started = list(processes)
    try:
        for process in started:
            await process.start()
        yield started
    finally:
        for process in started:
            await process.end()


async def waiting(redis: Any, bot: int = BOT_ID, queue: str = QUEUE) -> int:
    """Messages that are not settled: in doors, processing lists and lanes."""
    total = sum(int(n) for n in (await redis.hgetall(f"{queue}:depth:{bot}")).values())
    for door in (queue, f"{queue}:bulk"):
        total += int(await redis.llen(door))
        async for found in redis.scan_iter(f"{door}:processing:*"):
            total += int(await redis.llen(found))
    return total


async def dead(redis: Any, bot: int | str = BOT_ID, queue: str = QUEUE) -> list[dict[str, Any]]:
    """What is listed as dead, oldest first: the JSON of each, with its `element`."""
    found = []
    for number in await redis.zrange(f"{queue}:dead:{bot}", 0, -1):
        body = await redis.hget(f"{queue}:dead:{bot}:body", number)
        about, _, message = body.partition(b"\n")
        found.append({**json.loads(about), "element": message.partition(b"\n")[2]})
    return found
