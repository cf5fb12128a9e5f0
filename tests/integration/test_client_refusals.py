"""What a client is told when its address, token, bot or file is wrong; and where a blocking one works."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from pillarbox import Client, SyncClient
from pillarbox.errors import AccessRefused, PillarboxError, SettingError, StorageUnavailable, UnknownBot
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_solo.ports import free_port
from tests.support.admin import TOKENS, Admin, running_admin
from tests.support.bot_process import running_bot
from tests.support.inbox import BOT, incoming, opened

SECRET = "hunter2secret"


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


async def refused(
    expected: type[PillarboxError], where: str | Path, says: str, token: str | None = None, bot_id: int = BOT
) -> None:
    """By both kinds, in one line, without the token."""

    async def waiting() -> object:
        async with Client(where, bot_id=bot_id, token=token) as client:
            return await client.failed_updates()

    def blocking() -> object:
        with SyncClient(where, bot_id=bot_id, token=token) as client:
            return list(client.failed_updates())

    for call in (waiting, lambda: asyncio.to_thread(blocking)):
        with pytest.raises(expected, match=says) as caught:
            await call()
        text = str(caught.value)
        assert "\n" not in text
        assert SECRET not in text
        assert not text.startswith("DATABASE_URL")


async def test_tokens(admin: Admin) -> None:
    await refused(AccessRefused, admin.url, "admin does not know this token", token=SECRET * 2)
    await refused(AccessRefused, admin.url, "admin wants a token")
    await refused(AccessRefused, admin.url, "visible ASCII", token=f"{SECRET}\n")
    await refused(AccessRefused, admin.url, "no right to `payload`", token=TOKENS["viewer"][1])


async def test_a_token_that_may_only_act_can_act(admin: Admin, postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        (lease,) = await inbox.claim(1)
        await inbox.fail(lease.token, "E")
    async with Client(admin.url, bot_id=BOT, token=TOKENS["robot"][1]) as client:
        assert (await client.retry_failed([1])).moved == 1


async def test_a_bot_that_the_deployment_has_never_had(
    admin: Admin, postgres_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "bot.db"
    storage = SQLiteStorage(file)
    await storage.open()
    await storage.accept([incoming(1)])
    await storage.close()
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
    for where, token in ((admin.url, TOKENS["master"][1]), (postgres_url, None), (file, None)):
        await refused(UnknownBot, where, "nothing was ever stored of bot 99", token, bot_id=99)


async def test_a_bot_is_known_when_its_process_has_started(postgres_url: str) -> None:
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        await inbox.lock([type(BOT)(99)])
    async with Client(postgres_url, bot_id=99) as client:
        assert await client.failed_updates() == []


async def test_addresses(tmp_path: Path) -> None:
    await refused(SettingError, f"mysql://u:{SECRET}@h/d", "give the address of admin")
    await refused(SettingError, "http://:80", "no address of admin", token="t")
    await refused(StorageUnavailable, f"http://127.0.0.1:{free_port()}", "does not answer", token="t")
    await refused(StorageUnavailable, f"postgresql://u:{SECRET}@127.0.0.1:{free_port()}/d", "away")
    await refused(SettingError, tmp_path / "bot.db", "there is no file")
    with pytest.raises(SettingError, match="before the colon"):
        SyncClient("bot.db", bot_id=-1)


async def test_an_address_of_something_else(other_url: str) -> None:
    await refused(SettingError, other_url, "is not Pillarbox's admin", token="t")


@pytest.fixture
async def other_url() -> AsyncIterator[str]:
    """Any other web server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_files_that_are_no_inbox(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 1000)
    await refused(SettingError, text, "is no SQLite database")

    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE theirs (a)")
    db.close()
    before = other.read_bytes()
    await refused(SettingError, other, "database of another program")
    assert other.read_bytes() == before

    empty = tmp_path / "empty.db"
    empty.touch()
    await refused(SettingError, f"sqlite:///{empty}", "has no inbox of version")
    assert empty.stat().st_size == 0


@pytest.mark.parametrize(
    ("version", "says"), [(99, "of version 99, this program knows"), (1, "pillarbox run")]
)
async def test_a_file_of_another_version_is_left_alone(tmp_path: Path, version: int, says: str) -> None:
    file = tmp_path / "bot.db"
    storage = SQLiteStorage(file)
    await storage.open()
    await storage.close()
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    await refused(SettingError, file, says)
    with sqlite3.connect(file) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
    db.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "revision 9999"),
        ("DROP TABLE alembic_version", "no schema"),
    ],
)
async def test_a_database_of_another_version(postgres_url: str, statement: str, says: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(statement.encode())
    await refused(SettingError, postgres_url, says)


async def test_the_database_went_away_and_came_back(postgres_url: str) -> None:
    """A restarted server has ended the client's connection; the next call makes another."""
    async with opened(postgres_url) as inbox, Client(postgres_url, bot_id=BOT) as client:
        with SyncClient(postgres_url, bot_id=BOT) as blocking:
            await inbox.accept([incoming(1)])
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            assert await client.failed_updates() == []
            assert list(blocking.failed_updates()) == []


async def test_the_file_of_a_running_bot(tmp_path: Path) -> None:
    """The process that handles the bot has the file all the time, and runs what is retried."""
    file = tmp_path / "bot.db"
    with running_bot(file, 5) as bot:
        async with Client(file, bot_id=BOT) as client:
            assert len(await client.failed_updates()) == 5
            assert (await client.retry_failed([2, 4])).moved == 2
            assert (await client.discard_failed([1])).moved == 1
            await client.trust_key(42, "A1" * 20)
        with SyncClient(f"sqlite:///{file}", bot_id=BOT) as blocking:
            assert sorted(kept.update_id for kept in blocking.failed_updates()) == [3, 5]
            assert blocking.retry_failed().moved == 2
            pin = blocking.pin(42)
            assert pin is not None
            assert pin.fingerprint == "A1" * 20
        assert bot.stdout is not None
        ran = [int(bot.stdout.readline()) for _ in range(4)]
    assert ran[:2] == [2, 4]
    assert sorted(ran) == [2, 3, 4, 5]


async def test_a_blocking_client_runs_inside_a_running_loop_without_one_of_its_own(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook's cell, or a Django view under ASGI."""
    async with opened(postgres_url) as inbox:
        await inbox.accept([incoming(1)])
        before = threading.active_count()
        monkeypatch.setattr(asyncio, "new_event_loop", _none)
        with SyncClient(postgres_url, bot_id=BOT) as client:
            assert list(client.failed_updates()) == []
            assert client.retry_failed().moved == 0
        assert threading.active_count() == before


def _none() -> None:
    raise AssertionError("a hidden loop")


def test_threads_share_a_blocking_client(tmp_path: Path) -> None:
    file = tmp_path / "bot.db"
    with running_bot(file, 3), SyncClient(file, bot_id=BOT) as client:
        found: list[int] = []
        calls: list[Callable[[], None]] = [lambda: found.append(len(list(client.failed_updates())))] * 8
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [3] * 8


def test_import_of_the_package_loads_no_client() -> None:
    code = (
        "import sys, pillarbox; assert 'pillarbox.client' not in sys.modules;"
        " from pillarbox import SyncClient;"
        " bad = {'fastapi', 'aiogram', 'aiohttp', 'sqlalchemy'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
