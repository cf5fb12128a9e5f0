"""Runs the migrations: one starter at a time, and no lock waited for so long that the services stand."""

import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from pillarbox.errors import SettingError, StorageUnavailable

LOCK = 0x50494C4C_4D494752  # "PILLMIGR"
OLDEST = 150000
CONNECT_TIMEOUT = 10
LOCK_TIMEOUT = "2s"
"""Who waits for a table's lock keeps everybody else waiting: less than the 5 s that an accept may take."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


def config() -> Config:
    alembic = Config()
    alembic.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return alembic


def head() -> str | None:
    return ScriptDirectory.from_config(config()).get_current_head()


def upgrade(url: str, revision: str = "head", sleep: Callable[[float], None] = time.sleep) -> None:
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT),
        poolclass=NullPool,
    )
    try:
        with engine.connect() as connection:
            _locked(connection, revision, sleep)
    except (DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise StorageUnavailable(f"the migration could not run ({type(cause).__name__})") from error
    finally:
        engine.dispose()


def _locked(connection: Connection, revision: str, sleep: Callable[[float], None]) -> None:
    _check_direct(connection)
    # Committed at once, so that a waiting starter holds no snapshot. The lock is the session's.
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})
    connection.commit()
    try:
        _check_server(connection)
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.commit()
        _patiently(connection, revision, sleep)
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})
        connection.commit()


def _check_direct(connection: Connection) -> None:
    """A pooler would keep the session's lock for ever; it tells another pid than the server does."""
    driver = connection.connection.driver_connection
    served_by = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    if isinstance(driver, psycopg.Connection) and driver.info.backend_pid != served_by:
        raise SettingError(
            "DATABASE_DIRECT_URL: this is a pooler, and migrations need PostgreSQL itself;"
            " set it to the database's own address"
        )


def _check_server(connection: Connection) -> None:
    version = int(connection.execute(text("SHOW server_version_num")).scalar_one())
    if version < OLDEST:
        raise SettingError(f"DATABASE_URL: PostgreSQL {version // 10000} is too old; use version 15 or newer")


def _patiently(connection: Connection, revision: str, sleep: Callable[[float], None]) -> None:
    """Each migration is a transaction of its own, and one that found its table busy is tried again."""
    for pause in (*PAUSES, None):
        try:
            _run(connection, revision)
        except OperationalError as error:
            if not isinstance(error.orig, psycopg.errors.LockNotAvailable) or pause is None:
                raise
            connection.rollback()
            sleep(pause)
        else:
            return


def _run(connection: Connection, revision: str) -> None:
    alembic = config()
    alembic.attributes["connection"] = connection
    try:
        command.upgrade(alembic, revision)
    except CommandError as error:
        if "Can't locate revision" not in str(error):
            raise
        raise SettingError(
            "DATABASE_URL: the database is newer than this version; use the version that migrated it"
        ) from None
