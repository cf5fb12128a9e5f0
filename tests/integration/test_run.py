"""`pillarbox run` as a process: one bot's whole deployment on SQLite, beside a Telegram of its own."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest

from pillarbox.ids import BotId
from pillarbox.inbox import FailedUpdate
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox.settings import load
from pillarbox_solo import processes
from pillarbox_solo.ports import free_port
from pillarbox_solo.run import main
from pillarbox_solo.settings import RunSettings
from tests.faults.verdict import judge, key_of
from tests.support.simulator_client import SimulatorClient
from tests.support.stack import BOT_ID, TOKEN, Stack, running

PATIENCE = 60.0
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@contextmanager
def started(folder: Path, **settings: str) -> Iterator[Stack]:
    given = {"HANDLERS": "tests.support.run_bot", "RUN_NOTES": str(folder / "notes")}
    with running(folder, {**given, **settings}, store="sqlite") as stack:
        yield stack


@asynccontextmanager
async def telegram(stack: Stack) -> AsyncIterator[SimulatorClient]:
    async with aiohttp.ClientSession() as session:
        simulator = SimulatorClient(stack.simulator.url, session)
        await simulator.clock(20)
        yield simulator


async def say(simulator: SimulatorClient, *texts: str, chat: int = 42) -> None:
    await simulator.say([{"bot_id": BOT_ID, "chat_id": chat, "user_id": chat, "text": t} for t in texts])


async def heard(simulator: SimulatorClient) -> list[str]:
    return [call["params"]["text"] for call in await simulator.effects()]


async def answered(simulator: SimulatorClient, *texts: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while set(texts) - set(await heard(simulator)):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


def notes(stack: Stack) -> list[str]:
    file = stack.folder / "notes"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def valkey_pid(stack: Stack) -> int:
    return processes.read_pid(stack.folder / "valkey" / "valkey.pid") or 0


async def failures(stack: Stack) -> list[FailedUpdate]:
    """Read from the file itself, while the bot may be running."""
    storage = SQLiteStorage(stack.database_url)
    await storage.open()
    try:
        return await storage.failed_updates(BotId(BOT_ID))
    finally:
        await storage.close()


async def test_it_answers_and_a_second_one_is_refused_and_its_valkey_comes_back(tmp_path: Path) -> None:
    with started(tmp_path) as stack:
        async with telegram(stack) as simulator:
            await say(simulator, "hello")
            await answered(simulator, "hello")
            run = stack.services["run"]
            second = await asyncio.to_thread(
                subprocess.run,
                run.command,
                env={**run.environment, "INGEST_PORT": str(free_port()), "ADMIN_PORT": str(free_port())},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert second.returncode == 1
            (line,) = second.stderr.splitlines()
            assert f"run: bot {BOT_ID} is received and handled by process" in line
            os.kill(valkey_pid(stack), signal.SIGKILL)
            await say(simulator, "with a new queue")
            await answered(simulator, "with a new queue")
            assert run.process is not None
            assert run.process.poll() is None


async def test_ctrl_c_is_clean_and_the_next_start_has_the_data(tmp_path: Path) -> None:
    with started(tmp_path) as stack:
        run = stack.services["run"]
        async with telegram(stack) as simulator:
            await say(simulator, "fail", chat=1)
            await say(simulator, "sleep 1", chat=2)
            await until(lambda: any("sleep" in line for line in notes(stack)))
            queue = valkey_pid(stack)
            run.signal(signal.SIGINT)
            assert run.process is not None
            assert await asyncio.to_thread(run.process.wait, PATIENCE) == 0
            assert not processes.command(queue)
            assert "Traceback" not in run.tail(1 << 20)
            run.start()
            await asyncio.to_thread(run.ready)
            await answered(simulator, "sleep 1")
            assert await heard(simulator) == ["sleep 1"]
            (failed,) = await failures(stack)
            assert failed.error.startswith("KeyError: 'city' at run_bot.py:")
    assert [line.split()[0] for line in notes(stack) if "sleep" in line] == ["start", "end"]


async def test_killed_under_load_it_loses_and_reorders_nothing(tmp_path: Path) -> None:
    said = [(chat, number) for number in range(1, 9) for chat in range(1000, 1040)]
    with started(tmp_path, LEASE="2") as stack:
        run = stack.services["run"]
        async with telegram(stack) as simulator:
            for chat, number in said:
                await say(simulator, f"#u{chat}:{number}", chat=chat)
                if (chat, number) in [(1010, 3), (1030, 6)]:
                    run.kill()
                    run.start()
            expected = [("u", chat, number) for chat, number in said]
            await answered(simulator, *(f"#u{chat}:{number}" for chat, number in said))
            sent = [key for text in await heard(simulator) if (key := key_of(text))]
    verdict = judge(expected, sent, dead=set(), held=set(sent))
    assert verdict.good, verdict


async def test_a_handler_that_blocks_ends_the_process_and_runs_again_at_its_start(tmp_path: Path) -> None:
    with started(tmp_path, HANDLER_TIMEOUT="1", LEASE="2") as stack:
        run = stack.services["run"]
        async with telegram(stack) as simulator:
            await say(simulator, "block 600")
            assert run.process is not None
            assert await asyncio.to_thread(run.process.wait, PATIENCE) == 3
            assert "the event loop stays blocked" in run.tail()
            run.start()
            await until(lambda: len(notes(stack)) == 2)
            run.kill()


async def test_a_handler_that_does_not_end_holds_up_no_stop(tmp_path: Path) -> None:
    with started(tmp_path, SEND_TIMEOUT="0.5", STOP_TIMEOUT="1") as stack:
        run = stack.services["run"]
        async with telegram(stack) as simulator:
            await say(simulator, "hang")
            await until(lambda: len(notes(stack)) == 1)
            queue = valkey_pid(stack)
            run.signal(signal.SIGTERM)
            assert run.process is not None
            assert await asyncio.to_thread(run.process.wait, PATIENCE) == 3
            assert not processes.command(queue)


async def test_in_memory_telegram_is_told_after_the_handler(tmp_path: Path) -> None:
    with started(tmp_path, DATABASE_URL="memory://") as stack:
        run = stack.services["run"]
        async with telegram(stack) as simulator:
            began = time.monotonic()
            await say(simulator, "sleep 1.5")
            await until(lambda: len(notes(stack)) == 1)
            run.kill()
            run.start()
            await answered(simulator, "sleep 1.5")
            assert time.monotonic() - began > 1.5
    whats = [line.split()[0] for line in notes(stack)]
    assert whats == ["start", "start", "end"]


async def test_a_stop_ends_the_wait_for_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"bot_tokens": TOKEN, "handlers": "bot", "webhook_secret": "for-tests-only"}
    stop = asyncio.Event()
    ended = asyncio.create_task(main(load(RunSettings, database_url=NOWHERE, **given), stop))
    await asyncio.sleep(0.3)
    assert not ended.done()
    stop.set()
    async with asyncio.timeout(10):
        await ended
    assert not list(tmp_path.iterdir())


async def test_it_runs_on_postgres_and_a_redis_of_ones_own_too(
    tmp_path: Path, postgres_url: str, valkey_url: str
) -> None:
    with started(tmp_path, DATABASE_URL=postgres_url, REDIS_URL=valkey_url) as stack:
        async with telegram(stack) as simulator:
            await say(simulator, "hello")
            await answered(simulator, "hello")
        assert not valkey_pid(stack)
        assert not (stack.folder / "pillarbox.db").exists()


async def test_nothing_from_outside_is_needed_with_polling(tmp_path: Path) -> None:
    with started(tmp_path, RECEIVE="polling", WEBHOOK_URL="", WEBHOOK_SECRET="") as stack:
        async with telegram(stack) as simulator:
            await say(simulator, "hello")
            await answered(simulator, "hello")


async def test_a_storage_of_ones_own_is_enough(tmp_path: Path) -> None:
    own = {"STORAGE": "examples.own_storage.storage:FileStorage", "DATABASE_URL": str(tmp_path / "inbox")}
    with started(tmp_path, **own) as stack:
        async with telegram(stack) as simulator:
            await say(simulator, "hello")
            await answered(simulator, "hello")
