"""A connection that keeps what it confirmed, and SQLite's errors in our words."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pillarbox.errors import SettingError, StorageRefused, StorageUnavailable
from pillarbox.inbox.sqlite import files, filters, schema, statements
from pillarbox.inbox.sqlite.times import micros

BUSY = 5.0
WAL_SIZE = 64 << 20

DATA = frozenset(
    {sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}
)
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
PASSING = {
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_LOCKED: "it is locked",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk does not do what it is asked",
    sqlite3.SQLITE_READONLY: "it cannot be written to",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "its rights forbid it",
    sqlite3.SQLITE_NOMEM: "memory is short",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work",
    sqlite3.SQLITE_INTERRUPT: "the call was interrupted",
}


def translated(error: Exception) -> Exception:
    """Passing, data, or the error itself: a bug. The text holds no data."""
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return StorageRefused(f"the database refused the data ({type(error).__name__})")
    if not isinstance(error, sqlite3.Error):
        return error
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if code in DATA:
        return StorageRefused(f"the database refused the data ({name})")
    if code in PASSING:
        return StorageUnavailable(f"the database cannot serve: {PASSING[code]} ({name})")
    if code in DAMAGED:
        return StorageUnavailable(f"the database is damaged ({name}); put the last backup in its place")
    return error


def connect(path: Path) -> sqlite3.Connection:
    """For the thread that calls it. SettingError: a file that cannot be ours; else StorageUnavailable."""
    files.prepare(path)
    db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, cached_statements=256)
    with _closed_unless_ours(db, path):
        filters.define(db)
        _keep(db)
        with transaction(db):
            schema.upgrade(db)
            # The queue remembers a day of ids, which hold row numbers: a new file, or a restored backup,
            # must not give one of them again.
            db.execute(statements.FORWARD, (micros(time.time()),))
    return db


def attach(path: Path, *, any_thread: bool = False) -> sqlite3.Connection:
    """Beside the process that handles the bots; makes no file and changes no schema. Raises as `connect`."""
    try:
        there = path.is_file()
    except OSError as error:
        raise SettingError(f"DATABASE_URL: {path} cannot be opened ({error.strerror})") from None
    if not there:
        raise SettingError(f"DATABASE_URL: there is no file {path}; name the one of `pillarbox run`")
    address = f"{path.resolve().as_uri()}?mode=rw"
    db = sqlite3.connect(
        address, uri=True, timeout=BUSY, isolation_level=None, check_same_thread=not any_thread
    )
    with _closed_unless_ours(db, path):
        schema.check(db)
        filters.define(db)
        db.execute("PRAGMA synchronous = FULL")
    return db


@contextmanager
def _closed_unless_ours(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        db.close()
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise SettingError(f"DATABASE_URL: {path} is no SQLite database; name another file") from None
        raise translated(error) from error
    except BaseException:
        db.close()
        raise


def _keep(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA journal_size_limit = {WAL_SIZE}")
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise SettingError("DATABASE_URL: this file system cannot hold a WAL database; use a local disk")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    if db.in_transaction:  # a rollback that failed
        db.execute("ROLLBACK")
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
