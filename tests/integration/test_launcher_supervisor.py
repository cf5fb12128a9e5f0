"""The supervisor over real processes that crash, refuse their settings, or take long to stop."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pillarbox.backoff import Backoff
from pillarbox_solo import processes
from pillarbox_solo.supervisor import Service, Supervisor

STEADY = "import time; print('up', flush=True); time.sleep(600)"
REFUSES = "import sys; print('INGEST_PORT: not a number; set 8080', file=sys.stderr); sys.exit(2)"
CRASHES_ONCE = """
import os, pathlib, sys, time
mark = pathlib.Path(os.environ["MARK"])
if not mark.exists():
    mark.touch()
    os.kill(os.getpid(), 9)
print("up again", flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
ENDS_SLOWLY = """
import signal, sys, time
def end(*_):
    print("ending", flush=True)
    time.sleep(0.3)
    print("ended", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(600)
"""


class Lines:
    """What the supervisor said, and a way to wait for a part of it."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._more = asyncio.Event()

    def say(self, service: str, line: str) -> None:
        self.all.append(f"{service}: {line}")
        self._more.set()

    async def until(self, wanted: str) -> None:
        async with asyncio.timeout(10):
            while wanted not in self.all:
                self._more.clear()
                await self._more.wait()


def service(name: str, program: str, *, last: bool = False, **environment: str) -> Service:
    return Service(name, (sys.executable, "-c", program), program, os.environ | environment, last=last)


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def supervisor(tmp_path: Path, lines: Lines) -> Supervisor:
    return Supervisor(tmp_path / "run", lines.say, 1.0, lambda: Backoff(first=0.05, most=0.05))


@asynccontextmanager
async def running(supervisor: Supervisor, *services: Service) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(supervisor.run(services, stop))
        yield
        stop.set()


async def test_a_crashed_service_is_started_again(
    supervisor: Supervisor, lines: Lines, tmp_path: Path
) -> None:
    async with running(supervisor, service("sender", CRASHES_ONCE, MARK=str(tmp_path / "mark"))):
        await lines.until("sender: up again")
    assert lines.all[0].startswith("sender: was killed by SIGKILL; it is started again in 0.0")


async def test_a_traceback_of_each_start_is_shown_once(supervisor: Supervisor, lines: Lines) -> None:
    async with running(supervisor, service("sender", "def f():\n  raise KeyError('x')\nf()")):
        async with asyncio.timeout(10):
            while supervisor.crashes["sender"] < 3:  # noqa: ASYNC110 - other processes
                await asyncio.sleep(0.02)
    assert lines.all.count("sender: Traceback (most recent call last):") == 1
    assert lines.all.count("sender: KeyError: 'x'") >= 3
    assert supervisor.ends["sender"] == "ended with 1: KeyError: 'x'"


async def test_a_wrong_setting_stops_all_and_is_shown(supervisor: Supervisor, lines: Lines) -> None:
    services = [
        service("ingest", REFUSES),
        service("sender", STEADY),
        service("simulator", STEADY, last=True),
    ]
    async with asyncio.timeout(10):
        answer = await supervisor.run(services, asyncio.Event())
    assert answer == "INGEST_PORT: not a number; set 8080"
    assert lines.all.count("ingest: INGEST_PORT: not a number; set 8080") == 1


async def test_the_last_one_ends_after_the_others(supervisor: Supervisor, lines: Lines) -> None:
    services = [service("simulator", ENDS_SLOWLY, last=True), service("sender", ENDS_SLOWLY)]
    async with running(supervisor, *services):
        await lines.until("sender: up")
        await lines.until("simulator: up")
    assert lines.all[-4:] == ["sender: ending", "sender: ended", "simulator: ending", "simulator: ended"]


async def test_what_does_not_stop_is_killed(supervisor: Supervisor, lines: Lines, tmp_path: Path) -> None:
    async with running(supervisor, service("sender", STUBBORN)):
        await lines.until("sender: up")
        pid = processes.read_pid(tmp_path / "run" / "sender.pid")
        assert pid
    assert processes.command(pid) == []
    assert lines.all[-1] == "sender: did not stop within 1 s and is killed"


def test_orphans_are_ended_and_strangers_are_not(supervisor: Supervisor, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    orphan = subprocess.Popen([sys.executable, "-c", STEADY], stdout=subprocess.PIPE)
    stranger = subprocess.Popen([sys.executable, "-c", f"{STEADY}  # other"], stdout=subprocess.PIPE)
    try:
        for name, process in (("sender", orphan), ("admin", stranger)):
            assert process.stdout
            assert process.stdout.readline() == b"up\n"
            process.stdout.close()
            (folder / f"{name}.pid").write_text(f"{process.pid}\n")
        supervisor.end_orphans([service("sender", STEADY), service("admin", STEADY)])
        assert orphan.wait(5) == -signal.SIGTERM
        assert stranger.poll() is None
        assert list(folder.iterdir()) == []
    finally:
        for process in (orphan, stranger):
            process.kill()
            process.wait()
