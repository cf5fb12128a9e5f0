"""Real servers: one PostgreSQL and one Valkey a session, a fresh database and an empty Valkey a test."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from pillarbox import db
from pillarbox_solo.errors import FolderInUse
from pillarbox_solo.lock import FolderLock
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.server import Server
from pillarbox_solo.valkey import ValkeyServer

TEMPLATE = "pillarbox_template"
PREFIX = "pillarbox-test-"
MEMORY = Path("/dev/shm")
ROOM = 2 << 30

_number = itertools.count(1)


def postgres_programs() -> Path | None:
    """POSTGRES_BIN: the suite against another PostgreSQL than the wheel's."""
    named = os.environ.get("POSTGRES_BIN")
    return Path(named) if named else None


@contextmanager
def session_folder() -> Iterator[Path]:
    """In memory where there is room, so that fsync stays on, as the services demand, and costs nothing."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    base = MEMORY if roomy else Path(tempfile.gettempdir())
    _sweep(base)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    lock = FolderLock.take(folder)
    try:
        yield folder
    finally:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(base: Path) -> None:
    """Servers and folders of sessions that were killed: nobody holds their locks."""
    for folder in base.glob(f"{PREFIX}*"):
        if folder.stat().st_uid != os.geteuid() or not (folder / "lock").exists():
            continue
        try:
            lock = FolderLock.take(folder)
        except FolderInUse:
            continue
        for server in (PostgresServer(folder / "postgres"), ValkeyServer(folder / "valkey")):
            if server.folder.is_dir():
                server.end_orphan()
                discard(server)
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A throw-away server: stopped and removed at the end."""
    server.start()
    try:
        yield server
    finally:
        server.stop()
        discard(server)


def discard(server: Server) -> None:
    """Removes all that a server wrote, also where another user's data had to lie elsewhere."""
    if isinstance(server, PostgresServer) and server.place.shelter:
        shutil.rmtree(server.place.shelter)
    shutil.rmtree(server.folder)


def make_template(server: PostgresServer) -> None:
    """The migrated database that every test's own one is a copy of."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    db.migrate(server.database(TEMPLATE))


@contextmanager
def fresh_database(server: PostgresServer) -> Iterator[str]:
    """The URL of a migrated database that nobody used before; dropped afterwards, with its connections."""
    name = f"test_{next(_number)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
        )
    yield server.database(name)
    if server.alive:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
