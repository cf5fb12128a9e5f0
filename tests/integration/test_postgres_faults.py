"""What a PostgreSQL goes through: old transactions, an administrator, a full disk, clocks that are off."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pillarbox import db
from pillarbox.errors import StorageUnavailable
from pillarbox.inbox import Accepted, End, Finished
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.errors import LauncherError
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox import incoming, numbers, opened, query
from tests.support.servers import running

UPDATES, LANES = 1500, 30
LEFT = "SELECT 1 FROM lanes UNION ALL SELECT 1 FROM updates UNION ALL SELECT 1 FROM failed"
END_ONE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'pillarbox' AND datname = current_database() ORDER BY random() LIMIT 1
"""


async def accept_all(inbox: PostgresStorage) -> None:
    """As Telegram does: what was not confirmed comes again."""
    for first in range(0, UPDATES, 10):
        batch = [incoming(n, lane=f"chat:{n % LANES}") for n in range(first, first + 10)]
        while True:
            try:
                await inbox.accept(batch)
                break
            except StorageUnavailable:
                await asyncio.sleep(0.01)


async def dispatch_all(inbox: PostgresStorage, handled: dict[str, list[int]]) -> None:
    """Ends that were not written are shown again."""
    ends: list[End] = []
    while sum(map(len, handled.values())) < UPDATES or ends:
        try:
            turn = await inbox.turn(ends, 16)
        except StorageUnavailable:
            await asyncio.sleep(0.01)
            continue
        ends = []
        for lease in turn.leases:
            done = handled.setdefault(lease.lane, [])
            if lease.update_id not in done:
                done.append(lease.update_id)
            ends.append(Finished(lease.token, (b"x",)))
        if not ends:
            await asyncio.sleep(0.01)


async def relay_all(url: str) -> int:
    filed: set[tuple[int, int]] = set()

    async def file(rows: object) -> None:
        assert isinstance(rows, list)
        filed.update((row.row, row.n) for row in rows)

    async with opened(url) as inbox:
        while await inbox.relay(file, 200):
            pass
    return len(filed)


async def test_a_transaction_held_open_changes_nothing(postgres_url: str) -> None:
    """As a dump or a forgotten page: no dead row goes away while it lasts."""
    handled: dict[str, list[int]] = {}
    with psycopg.connect(postgres_url) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM updates")
        async with opened(postgres_url, seen_for=0.001) as inbox:
            await asyncio.gather(accept_all(inbox), dispatch_all(inbox, handled))
            await inbox.sweep()
            assert await relay_all(postgres_url) == UPDATES
        assert old.execute("SELECT count(*) FROM updates").fetchone() == (0,)
    assert all(done == sorted(done) for done in handled.values())
    assert query(postgres_url, LEFT) == []
    assert query(postgres_url, "SELECT 1 FROM seen") == []


async def test_an_administrator_ends_backends_under_load(postgres_url: str) -> None:
    """One after the other, whichever it hits; an update that had run may run again, none is lost."""
    handled: dict[str, list[int]] = {}
    ended = 0

    async def administer() -> None:
        nonlocal ended
        while True:
            ended += len(await asyncio.to_thread(query, postgres_url, END_ONE))
            await asyncio.sleep(0.01)

    async with opened(postgres_url, lease=1) as one, opened(postgres_url, lease=1) as other:
        disturbing = asyncio.create_task(administer())
        async with asyncio.timeout(60):
            await asyncio.gather(accept_all(one), dispatch_all(one, handled), dispatch_all(other, handled))
        disturbing.cancel()
        await asyncio.wait({disturbing})
        async with asyncio.timeout(10):
            while query(postgres_url, LEFT):
                await finish_what_comes(one)
    assert ended > 3, ended
    assert all(done == sorted(done) for done in handled.values())
    assert await relay_all(postgres_url) == UPDATES


async def finish_what_comes(inbox: PostgresStorage) -> None:
    """Of runs whose lease's answer was cut off."""
    try:
        leases = await inbox.claim(16)
        await inbox.turn([Finished(lease.token, (b"x",)) for lease in leases], 0)
    except StorageUnavailable:
        pass  # a connection that was ended just before
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("off", [600.0, -600.0])
async def test_a_process_clock_that_is_off_takes_no_lease_and_keeps_none(
    postgres_url: str, off: float
) -> None:
    """Leases are the database's: ten minutes more or less in a process are nothing to them."""

    def clock() -> float:
        return time.monotonic() + off

    strange = PostgresStorage(load(InboxSettings, database_url=postgres_url, lease=1.0), clock)
    async with opened(postgres_url, lease=1.0) as right:
        await right.accept([incoming(1), incoming(2, lane="chat:2")])
        (held,) = await right.claim(1)
        assert numbers(await strange.claim(5)) == [2]
        await asyncio.sleep(0.3)
        assert await strange.claim(5) == []
        assert await right.finish(held.token)
        await asyncio.sleep(1.1)
        assert numbers(await right.claim(5)) == [2]
    await strange.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 160 MiB. Only root may make one."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=0755", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


async def accept_big(inbox: PostgresStorage, number: int) -> list[Accepted]:
    return await inbox.accept([incoming(number, lane=f"chat:{number % 5}", body=os.urandom(200_000))])


async def accept_until_refused(inbox: PostgresStorage) -> int:
    for number in range(1, 400):
        try:
            await accept_big(inbox, number)
        except StorageUnavailable:
            return number
    raise AssertionError("the disk is not full")


async def test_a_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    """Telegram is told 503 for what is not stored; what was stored is there when there is room again."""
    server = PostgresServer(small_disk / "postgres")
    ballast = small_disk / "ballast"
    with running(server):
        db.migrate(server.url)
        async with opened(server.url) as inbox:
            assert await accept_big(inbox, 0) == [Accepted.NEW]
            ballast.write_bytes(b"x" * max(0, shutil.disk_usage(small_disk).free - (4 << 20)))
            stored = await accept_until_refused(inbox)
            ballast.unlink()
            await _up_again(server)
            assert await _patiently(inbox, 1000) == [Accepted.NEW]
            kept = {number for (number,) in query(server.url, "SELECT update_id FROM updates")}
            assert set(range(stored)) | {1000} <= kept
            (lease, *_) = await inbox.claim(1)
            assert lease.update_id == 0
            assert await inbox.finish(lease.token)


async def _up_again(server: PostgresServer) -> None:
    """Where even the log of changes had no room it went down, and its supervisor starts it."""
    async with asyncio.timeout(30):
        while not server.alive:
            try:
                await asyncio.to_thread(server.start)
            except LauncherError:
                await asyncio.sleep(0.5)


async def _patiently(inbox: PostgresStorage, number: int) -> list[Accepted]:
    async with asyncio.timeout(20):
        while True:
            try:
                return await accept_big(inbox, number)
            except StorageUnavailable:
                await asyncio.sleep(0.1)
