"""Ingest is killed under load: what got its 200 is stored, once."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import aiohttp

from pillarbox_solo.ports import free_port
from tests.support.inbox import query
from tests.support.ingest import BOT_ID, HEADER, SECRET, TOKENS, update


class Killed:
    """A process of ingest that is started again after each kill."""

    def __init__(self, url: str, log: Path) -> None:
        self.port = free_port()
        self.log = log
        self._environment = {
            **os.environ,
            "DATABASE_URL": url,
            "BOT_TOKENS": TOKENS,
            "WEBHOOK_SECRET": SECRET,
            "INGEST_HOST": "127.0.0.1",
            "INGEST_PORT": str(self.port),
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


async def post(session: aiohttp.ClientSession, url: str, number: int) -> bool:
    body = json.dumps(update(number, chat_id=number % 50)).encode()
    try:
        async with session.post(url, data=body, headers={HEADER: SECRET}) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        await asyncio.sleep(0.02)
        return False


async def test_kill_9_under_load_loses_nothing_that_got_200(postgres_url: str, tmp_path: Path) -> None:
    ingest = await asyncio.to_thread(Killed, postgres_url, tmp_path / "log")
    url = f"http://127.0.0.1:{ingest.port}/webhook/{BOT_ID}"
    ids = itertools.count(1)
    confirmed: set[int] = set()
    done = asyncio.Event()

    async def deliver(session: aiohttp.ClientSession) -> None:
        """As Telegram does: the same update until it is confirmed."""
        while not done.is_set():
            number = next(ids)
            while not await post(session, url, number):
                pass
            confirmed.add(number)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(deliver(session))
        for _ in range(3):
            await confirmed_more(confirmed, 300)
            await asyncio.to_thread(ingest.kill)
            await asyncio.to_thread(ingest.start)
        await confirmed_more(confirmed, 100)
        done.set()
    ingest.process.terminate()
    assert await asyncio.to_thread(ingest.process.wait, 20) == 0
    rows = query(postgres_url, "SELECT update_id FROM updates")
    assert sorted(confirmed) == sorted(number for (number,) in rows)
    assert SECRET not in (tmp_path / "log").read_text()


async def confirmed_more(confirmed: set[int], count: int) -> None:
    wanted = len(confirmed) + count
    async with asyncio.timeout(60):
        while len(confirmed) < wanted:  # noqa: ASYNC110 - twenty tasks add to it
            await asyncio.sleep(0.01)


def test_a_missing_setting_is_one_line_and_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pillarbox_ingest"],
        env={**os.environ, "DATABASE_URL": "postgresql://x@127.0.0.1/x", "BOT_TOKENS": TOKENS},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "ingest: WEBHOOK_SECRET is not set (what X-Telegram-Bot-Api-Secret-Token must be); set it, for"
        " example WEBHOOK_SECRET=<32 random characters of A-Z a-z 0-9 _ ->, or RECEIVE=polling\n"
    )
