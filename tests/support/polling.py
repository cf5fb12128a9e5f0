"""Pollers: ingest with RECEIVE=polling, in the test's own process or in ones that can be killed or paused."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp

from pillarbox_solo.ports import free_port
from tests.support.inbox import query
from tests.support.ingest import BOT_ID, TOKENS

TOKEN = TOKENS.split(",")[0]


class PollerProcess:
    def __init__(self, url: str, api: str, log: Path, **settings: str) -> None:
        self.port = free_port()
        self.log = log
        self._environment = {
            **os.environ,
            "DATABASE_URL": url,
            "BOT_TOKENS": TOKEN,
            "RECEIVE": "polling",
            "TELEGRAM_API_BASE": api,
            "INGEST_HOST": "127.0.0.1",
            "INGEST_PORT": str(self.port),
            **settings,
        }
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pillarbox_ingest"], env=self._environment, stdout=log, stderr=log
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """Also of one that is paused."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        return self.process.wait(20)

    async def asks(self) -> bool:
        try:
            return await asks(self.port)
        except aiohttp.ClientError:
            return False

    async def listens(self) -> bool:
        try:
            async with aiohttp.request("GET", f"http://127.0.0.1:{self.port}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


async def asks(port: int, bot_id: int = BOT_ID) -> bool:
    return await metric(port, f'pillarbox_polling{{bot="{bot_id}"}}') == 1


async def metric(port: int, name: str) -> float:
    async with aiohttp.request("GET", f"http://127.0.0.1:{port}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " ")), 0.0)


async def until(condition: Any, seconds: float = 20.0, step: float = 0.02) -> float:
    """How long it took until the (async) `condition` was true."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - another process's time
            await asyncio.sleep(step)
    return loop.time() - began


async def stored(url: str) -> list[int]:
    """The ids, in the order of acceptance."""
    rows = await asyncio.to_thread(query, url, "SELECT update_id FROM updates ORDER BY row_id")
    return [number for (number,) in rows]
