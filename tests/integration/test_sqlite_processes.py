"""SQLite and the processes around it: killed, started twice, out of disk."""

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pillarbox.errors import PollingConflictError
from pillarbox.ids import BotId
from pillarbox.inbox import Finished, OutboxRow
from pillarbox.inbox.contract.given import claimed, drained
from pillarbox.inbox.sqlite import SQLiteStorage

BOT = BotId(42)


@contextmanager
def process(what: str, path: Path, *more: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.support.sqlite_process", what, str(path), *map(str, more)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        if started.stdout is not None:
            started.stdout.close()


def said(started: "subprocess.Popen[str]") -> str:
    assert started.stdout is not None
    line = started.stdout.readline()
    assert line, f"it ended with {started.wait()}"
    return line.strip()


def killed(started: "subprocess.Popen[str]") -> list[str]:
    """Ends it as the kernel would; all that it had confirmed."""
    started.send_signal(signal.SIGKILL)
    rest, _ = started.communicate()
    return [line for line in rest.splitlines() if line]


async def opened(path: Path) -> SQLiteStorage:
    storage = SQLiteStorage(path)
    await storage.open()
    await storage.lock([BOT])
    return storage


@pytest.mark.parametrize("seed", range(3))
async def test_what_was_confirmed_before_a_kill_is_there(tmp_path: Path, seed: int) -> None:
    path, confirmed = tmp_path / "bot.db", set[int]()
    for first in (0, 100_000):
        with process("accept", path, first) as accepting:
            confirmed.add(int(said(accepting)))
            await asyncio.sleep(0.1 + seed / 10)
            confirmed |= {int(line) for line in killed(accepting)[:-1]}
    storage = await opened(path)
    ran = [int(lease.update_id) for lease in await drained(storage)]
    await storage.close()
    assert len(confirmed) > 20
    assert confirmed <= set(ran)
    assert len(ran) == len(set(ran))


async def test_a_killed_handler_loses_nothing_and_queues_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with process("accept", path) as accepting:
        while int(said(accepting)) < 600:
            pass
        killed(accepting)
    for _ in range(3):
        with process("handle", path) as handling:
            assert said(handling) == "locked"
            for _ in range(40):
                said(handling)
            killed(handling)
    storage = await opened(path)
    rows: list[OutboxRow] = []

    async def file(some: Sequence[OutboxRow]) -> None:
        rows.extend(some)

    before = await storage.counts(BOT)
    left = await drained(storage)
    while await storage.relay(file, 500):
        pass
    await storage.close()
    queued = [int(row.body) for row in rows]
    assert before.outbox == len(queued) > 30
    assert len(queued) == len(set(queued))
    assert not set(queued) & {int(lease.update_id) for lease in left}
    assert max(lease.run for lease in left) == 2


async def test_a_run_that_a_kill_cut_is_counted_and_starts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with process("accept", path) as accepting:
        said(accepting)
        killed(accepting)
    for run in (1, 2):
        with process("hold", path) as holding:
            assert said(holding).endswith(f" {run}")
            killed(holding)


async def test_a_second_process_is_refused_and_told_which_is_the_first(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with process("handle", path) as handling:
        assert said(handling) == "locked"
        storage = SQLiteStorage(path)
        await storage.open()
        assert not await storage.try_lock([BOT])
        with pytest.raises(PollingConflictError) as refused:
            await storage.lock([BOT])
        assert str(handling.pid) in str(refused.value)
        assert f"{path}.{BOT}.lock" in str(refused.value)
        killed(handling)
        assert await storage.try_lock([BOT])
        await storage.close()


async def test_people_act_on_failed_updates_beside_a_busy_process(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    storage = await opened(path)
    with process("accept", path, 1000) as accepting:
        said(accepting)
        (lease,) = await claimed(storage)
        await storage.fail(lease.token, "E: at bot.py:1")
        assert (await storage.requeue(BOT, None, "anna")).moved == 1
        killed(accepting)
    turn = await storage.turn((), 10)
    assert (await storage.turn([Finished(lease.token) for lease in turn.leases], 0)).lost == frozenset()
    await storage.close()


def test_a_full_disk_is_told_and_passes(tmp_path: Path) -> None:
    with process("fill", tmp_path / "bot.db") as filling:
        lines = list(itertools.takewhile(bool, filling.communicate(timeout=30)[0].splitlines()))
        assert filling.returncode == 0
    (full,) = [line for line in lines if line.startswith("full")]
    assert "the database cannot serve: the disk" in full
    assert lines[-1].startswith("accepted")
