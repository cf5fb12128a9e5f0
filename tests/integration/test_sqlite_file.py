"""The file of SQLiteStorage: who may read it, what else it may not be, how it is copied."""

import asyncio
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from pillarbox.errors import SettingError, StorageError, StorageRefused, StorageUnavailable
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Accepted, Limits, Storage
from pillarbox.inbox.contract.given import drained, failed, update
from pillarbox.inbox.repeats import key
from pillarbox.inbox.sqlite import SQLiteStorage, connection, files, schema, statements

BOT = BotId(42)


async def opened(path: Path, limits: Limits | None = None) -> SQLiteStorage:
    storage = SQLiteStorage(path, limits)
    await storage.open()
    await storage.lock([BOT])
    return storage


async def test_all_files_are_for_their_owner_only(tmp_path: Path) -> None:
    storage = await opened(tmp_path / "bot.db")
    await storage.accept([update(1)])
    names = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    await storage.close()
    assert names == dict.fromkeys(("bot.db", "bot.db-wal", "bot.db-shm", f"bot.db.{BOT}.lock"), 384)


async def test_a_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    await (await opened(path)).close()
    path.chmod(0o644)
    with structlog.testing.capture_logs() as logs:
        files.warn(path)
    assert [(line["log_level"], line["file"]) for line in logs] == [("warning", str(path))]


MOUNTS = """22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw - nfs4 server:/x rw
31 30 0:41 / /mnt/share/with\\040blank rw - ext4 /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/var/bot.db", "ext4"), ("/mnt/share/bot.db", "nfs4"), ("/mnt/share/with blank/bot.db", "ext4")],
)
def test_the_file_system_is_found(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert files.file_system(Path(path), mounts) == kind
    assert files.file_system(Path(path), tmp_path / "none") is None


def test_a_network_share_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "file_system", lambda _: "nfs4")
    with structlog.testing.capture_logs() as logs:
        files.warn(tmp_path / "bot.db")
    assert [line["file_system"] for line in logs] == ["nfs4"]


@pytest.mark.parametrize(
    ("url", "path"),
    [("sqlite:///bot.db", "bot.db"), ("sqlite:////var/bot.db", "/var/bot.db"), ("./bot.db", "bot.db")],
)
def test_a_url_or_a_path_names_the_file(url: str, path: str) -> None:
    assert files.path_of(url) == Path(path)


@pytest.mark.parametrize("url", ["", "sqlite:///", "postgresql://x/y", "sqlite:///:memory:", "sqlite://x"])
def test_what_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="DATABASE_URL"):
        files.path_of(url)


async def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "text", tmp_path / "other.db", tmp_path / "newer.db"
    text.write_text("no database, but long enough to look like one " * 100)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE notes (text)")
    db.close()
    with sqlite3.connect(newer) as db:
        db.execute(f"PRAGMA user_version = {len(schema.VERSIONS) + 1}")
    db.close()
    for path, words in ((text, "no SQLite database"), (other, "another program"), (newer, "update it")):
        with pytest.raises(SettingError, match=words):
            await SQLiteStorage(path).open()
    with pytest.raises(SettingError, match="a folder that exists"):
        await SQLiteStorage(tmp_path / "none" / "bot.db").open()


async def test_an_older_file_is_brought_to_the_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = await opened(tmp_path / "bot.db")
    await storage.accept([update(1)])
    await storage.close()
    newest = ("CREATE TABLE added (x INTEGER)", "ALTER TABLE bots ADD COLUMN y INTEGER")
    monkeypatch.setattr(schema, "VERSIONS", (*schema.VERSIONS, newest))
    storage = await opened(tmp_path / "bot.db")
    assert len(await drained(storage)) == 1
    await storage.close()
    with sqlite3.connect(tmp_path / "bot.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(schema.VERSIONS),)
        assert db.execute("SELECT count(*) FROM added").fetchone() == (0,)
    db.close()


async def test_a_file_of_version_4_knows_its_updates_by_their_ids(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "bot.db") as db:
        for statement in (name for version in schema.VERSIONS[:4] for name in version):
            db.execute(statement)
        db.execute("PRAGMA user_version = 4")
        for n, table, more in ((1, "updates", ""), (2, "failed", ", failed_at, runs, error")):
            known = key(update(n, n))
            db.execute("INSERT INTO seen (bot_id, update_id, digest, accepted_at) VALUES (?, ?, ?, 1)", known)
            db.execute(
                f"INSERT INTO {table} (row_id, bot_id, lane, update_id, kind, accepted_at, body{more})"  # noqa: S608
                f" VALUES (?1, 42, 'chat:' || ?1, ?1, 'message', 1, ?2{', 1, 1, 0' if more else ''})",
                (n, update(n, n).body),
            )
        db.execute("INSERT INTO lanes (bot_id, lane, head) VALUES (42, 'chat:1', 1)")
    db.close()
    storage = await opened(tmp_path / "bot.db", Limits(seen_for=1))
    assert (await storage.requeue(BOT, [UpdateId(2), UpdateId(1)], "anna")).running == [1]
    await storage.sweep()
    assert await storage.accept([update(1, 1), update(2, 2)]) == [Accepted.REPEAT] * 2
    assert sorted(lease.update_id for lease in await drained(storage)) == [1, 2]
    await storage.sweep()
    assert await storage.accept([update(1, 1), update(2, 2)]) == [Accepted.NEW] * 2
    await storage.close()


async def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    storage = await opened(path)
    await storage.accept([update(n, n) for n in range(500)])
    await storage.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    storage = SQLiteStorage(path)
    with pytest.raises(StorageUnavailable, match="damaged"):
        await storage.open()
    await storage.close()


async def test_a_new_file_gives_no_number_that_the_last_one_gave(tmp_path: Path) -> None:
    rows = []
    for _ in range(2):
        storage = await opened(tmp_path / "bot.db")
        await storage.accept([update(1)])
        rows.append((await storage.claim(1))[0].row)
        await storage.close()
        for file in tmp_path.iterdir():
            file.unlink()
    assert rows[0] < rows[1]


async def test_a_file_that_another_keeps_locked_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY", 0.1)
    storage = await opened(tmp_path / "bot.db")
    other = sqlite3.connect(tmp_path / "bot.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="keeps it locked"):
        await storage.accept([update(1)])
    other.execute("ROLLBACK")
    other.close()
    assert len(await storage.accept([update(1)])) == 1
    await storage.close()


async def test_a_storage_that_is_not_open_is_unavailable(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "bot.db")
    with pytest.raises(StorageUnavailable):
        await storage.ping()
    await storage.open()
    await storage.close()
    with pytest.raises(StorageUnavailable):
        await storage.ping()


async def test_bad_data_in_one_call_harms_no_other(tmp_path: Path) -> None:
    storage = await opened(tmp_path / "bot.db")
    await failed(storage, update(1))

    async def noted(by: str) -> str:
        try:
            return str((await storage.discard(BOT, None, by)).moved)
        except StorageError as error:
            return type(error).__name__

    answers = await asyncio.gather(noted("\ud800"), *(storage.accept([update(n)]) for n in range(2, 20)))
    assert answers[0] == StorageRefused.__name__
    assert (await storage.counts(BOT)).pending == 18
    await storage.close()


async def test_calls_that_gathered_share_a_transaction(tmp_path: Path) -> None:
    storage = await opened(tmp_path / "bot.db")
    await storage.accept([update(0)])
    before = (tmp_path / "bot.db-wal").stat().st_size
    await asyncio.gather(*(storage.accept([update(n)]) for n in range(1, 201)))
    pages = ((tmp_path / "bot.db-wal").stat().st_size - before) / 4096
    assert pages < 200
    await storage.close()


def backup(how: str, path: Path, copy: Path) -> None:
    if how == "sqlite3":
        subprocess.run(["sqlite3", str(path), f'.backup "{copy}"'], check=True, timeout=30)
    else:
        source, target = sqlite3.connect(path), sqlite3.connect(copy)
        source.backup(target)
        source.close()
        target.close()


@pytest.mark.parametrize("how", ["python", "sqlite3"])
async def test_a_backup_taken_while_the_bot_writes_is_whole(tmp_path: Path, how: str) -> None:
    """As docs/storages.md says."""
    if how == "sqlite3" and shutil.which("sqlite3") is None:
        pytest.skip("no sqlite3 on this machine")
    path, copy = tmp_path / "bot.db", tmp_path / "copy.db"
    storage = await opened(path)
    await storage.accept([update(n, n % 7) for n in range(500)])
    writing = asyncio.create_task(_write(storage))
    await asyncio.to_thread(backup, how, path, copy)
    writing.cancel()
    await asyncio.wait({writing})
    await storage.close()
    restored = await opened(copy)
    ran = [int(lease.update_id) for lease in await drained(restored)]
    await restored.close()
    assert set(range(500)) <= set(ran)
    for lane in range(7):
        assert [n for n in ran if n < 500 and n % 7 == lane] == list(range(lane, 500, 7))


async def _write(storage: Storage) -> None:
    for n in range(1000, 1_000_000):
        await storage.accept([update(n, n % 7)])
        await asyncio.sleep(0)


SMALL = ("SCAN CONSTANT ROW", "SCAN numbers", "INDEX lanes_", "SCAN json_each")  # one row; leased lanes; ids


def test_no_statement_reads_a_whole_table(tmp_path: Path) -> None:
    """Whatever waits in it, a call costs the same."""
    db = connection.connect(tmp_path / "bot.db")
    verbs = ("SELECT", "INSERT", "UPDATE", "DELETE")
    every = {n: s for n, s in vars(statements).items() if isinstance(s, str) and not n.startswith("_")}
    hot = {name: statement for name, statement in every.items() if statement.strip().startswith(verbs)}
    del hot["FAILED_BOTS"]  # of the sweep
    del hot["KNOWS"]  # asks whether there is any row at all
    assert len(hot) > 40
    for name, statement in hot.items():
        numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
        marks = max(numbered) if numbered else statement.count("?")
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", [None] * marks)]
        assert not [s for s in plan if s.startswith("SCAN") and not any(w in s for w in SMALL)], (name, plan)
    db.close()


async def test_opening_can_be_cut_and_tried_again(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "bot.db")
    opening = asyncio.create_task(storage.open())
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait({opening})
    await storage.open()
    assert len(await storage.accept([update(1)])) == 1
    await storage.close()


def test_nothing_else_of_the_package_needs_pytest() -> None:
    storages = ", ".join(f"pillarbox.inbox.{name}" for name in ("sqlite", "memory", "postgres"))
    code = f"import sys, {storages}; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
