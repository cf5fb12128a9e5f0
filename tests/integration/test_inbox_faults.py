"""DESIGN, Inbox 1 and 10: what PostgreSQL does to us, and what is still true afterwards."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pillarbox import db
from pillarbox.errors import SettingError, StorageUnavailable
from pillarbox.inbox import Accepted, Finished
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox import incoming, numbers, opened, query
from tests.support.servers import running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[PostgresServer]:
    """One that may be killed."""
    server = PostgresServer(tmp_path / "postgres")
    with running(server):
        db.migrate(server.url)
        yield server


async def test_terminated_backends_are_replaced(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        renewer = inbox.renewer()
        (lease,) = await inbox.claim(1)
        assert renewer.renew([lease.token]) == frozenset()
        kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pillarbox'"
        assert query(postgres_url, kill)
        for call in (inbox.ping(), inbox.accept([incoming(2)])):
            try:
                await call
            except StorageUnavailable:
                continue
        with pytest.raises(StorageUnavailable):
            renewer.renew([lease.token])
        assert renewer.renew([lease.token]) == frozenset()
        assert await inbox.finish(lease.token)
        renewer.close()


async def test_an_answer_that_does_not_come_is_passing(own_server: PostgresServer) -> None:
    """PostgreSQL stands still, as on a stuck disk; afterwards all goes on."""
    async with opened(own_server.url, lease=60) as inbox:
        await inbox.accept([incoming(1)])
        (lease,) = await inbox.claim(1)
        renewer = inbox.renewer()
        renewer.renew([lease.token])
        children = _processes(own_server)
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
        try:
            loop = asyncio.get_running_loop()
            started = loop.time()
            with pytest.raises(StorageUnavailable):
                await inbox.accept([incoming(2)])
            with pytest.raises(StorageUnavailable):
                await asyncio.to_thread(renewer.renew, [lease.token])
            assert loop.time() - started < 14
        finally:
            for pid in reversed(children):
                os.kill(pid, signal.SIGCONT)
        assert await inbox.accept([incoming(3)]) == [Accepted.NEW]
        assert renewer.renew([lease.token]) == frozenset()
        assert await inbox.finish(lease.token)
        renewer.close()


def _processes(server: PostgresServer) -> list[int]:
    """The postmaster first, so that it starts no new backend."""
    parent = int(server.pid_file.read_text().split()[0])
    found = [parent]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


async def more_than(accepted: list[int], count: int) -> None:
    while len(accepted) <= count:  # noqa: ASYNC110 - four tasks add to it, in a database's time
        await asyncio.sleep(0.02)


async def test_what_was_accepted_survives_kill_9(own_server: PostgresServer) -> None:
    """PostgreSQL dies in the middle of accepts, twice; what got an answer is there, in order."""
    accepted: list[int] = []
    async with opened(own_server.url) as inbox:
        enough = asyncio.Event()

        async def accept(part: int) -> None:
            number = part
            while not enough.is_set():
                number += 4
                try:
                    (answer,) = await inbox.accept([incoming(number, lane=f"chat:{part}")])
                except StorageUnavailable:
                    await asyncio.sleep(0.05)
                else:
                    assert answer is Accepted.NEW
                    accepted.append(number)

        tasks = [asyncio.create_task(accept(part)) for part in range(4)]
        for _ in range(2):
            await more_than(accepted, len(accepted) + 200)
            await asyncio.to_thread(own_server.kill)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(own_server.start)
        await more_than(accepted, len(accepted) + 50)
        enough.set()
        await asyncio.gather(*tasks)
        stored = {number for (number,) in query(own_server.url, "SELECT update_id FROM updates")}
        assert set(accepted) <= stored
        assert query(own_server.url, "SELECT sum(pending) FROM lanes") == [(len(stored),)]
        order = []
        turn = await inbox.turn([], 1)
        while turn.leases:
            order += [(lease.lane, lease.update_id) for lease in turn.leases]
            turn = await inbox.turn([Finished(lease.token) for lease in turn.leases], 1)
        for part in range(4):
            mine = [number for lane, number in order if lane == f"chat:{part}"]
            assert mine == sorted(mine)
        assert len(order) == len(stored)


async def test_waiting_goes_on_after_a_restart(own_server: PostgresServer) -> None:
    async with opened(own_server.url) as inbox, opened(own_server.url) as other:
        await other.wait(5)
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
        async with asyncio.timeout(20):
            await other.wait(30)  # listens again, and says: look
        waiting = asyncio.create_task(other.wait(30))
        await asyncio.sleep(0.1)
        await inbox.accept([incoming(1)])
        async with asyncio.timeout(5):
            await waiting
        assert numbers(await other.claim(1)) == [1]


async def test_no_database_at_the_start_is_passing() -> None:
    settings = load(InboxSettings, database_url="postgresql://nobody@127.0.0.1:1/none")
    inbox = PostgresStorage(settings)
    with pytest.raises(StorageUnavailable):
        await inbox.open()
    with pytest.raises(StorageUnavailable):
        await inbox.accept([incoming(1)])
    await inbox.wait(0.05)
    await inbox.close()


@pytest.mark.parametrize("unsafe", [False, True])
async def test_a_database_that_may_forget_is_refused(postgres_url: str, unsafe: bool) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    if unsafe:
        async with opened(postgres_url, allow_unsafe_durability=True) as inbox:
            assert await inbox.accept([incoming(1)]) == [Accepted.NEW]
        return
    with pytest.raises(SettingError, match=r"synchronous_commit off.*ALLOW_UNSAFE_DURABILITY"):
        async with opened(postgres_url):
            pass


async def test_an_unmigrated_database_is_refused(postgres_url: str) -> None:
    query(postgres_url, "DROP TABLE alembic_version")
    with pytest.raises(SettingError, match="run `pillarbox migrate`"):
        async with opened(postgres_url):
            pass


async def test_a_cancelled_call_leaves_no_half_used_connection(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        with psycopg.connect(postgres_url) as blocking:
            blocking.execute("SELECT 1 FROM lanes FOR UPDATE")
            task = asyncio.create_task(inbox.accept([incoming(2)]))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await inbox.ping()
        assert await inbox.accept([incoming(3)]) == [Accepted.NEW]


async def test_one_process_holds_a_lock(postgres_url: str) -> None:
    async with opened(postgres_url) as one, opened(postgres_url) as other:
        async with one.alone("a") as ours, other.alone("a") as theirs, other.alone("b") as free:
            assert (ours, theirs, free) == (True, False, True)
        async with asyncio.timeout(5):
            while True:
                async with other.alone("a") as now:
                    if now:
                        break
