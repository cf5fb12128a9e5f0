"""A small pool for reading: every question is one short read-only transaction with a deadline."""

import asyncio
import builtins
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Executable, Row, func, make_url, select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, ProgrammingError, TimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from pillarbox.errors import StorageUnavailable

STATEMENT_TIMEOUT = 3.0
DEADLINE = 5.0
UNDEFINED = {"42P01", "42703"}
"""A table or column that the migrations have not made yet."""


def engine(url: str) -> AsyncEngine:
    """Connects when it is first asked, so that the process stands while the database is away."""
    return create_async_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        pool_size=3,
        max_overflow=2,
        pool_timeout=STATEMENT_TIMEOUT,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": 3, "prepare_threshold": None, "application_name": "pillarbox admin"},
    )


class Database:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def close(self) -> None:
        await self._engine.dispose()

    async def ask(self, query: Executable) -> Sequence[Row[Any]]:
        """The rows of one query; StorageUnavailable when the database is away, slow or not migrated."""
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._ask(query)
        except (OperationalError, InterfaceError, TimeoutError, builtins.TimeoutError) as error:
            raise StorageUnavailable(type(error).__name__) from None
        except DBAPIError as error:
            if error.connection_invalidated or _undefined(error):
                raise StorageUnavailable(type(error).__name__) from None
            raise

    async def _ask(self, query: Executable) -> Sequence[Row[Any]]:
        async with self._engine.connect() as connection:
            await connection.execution_options(postgresql_readonly=True)
            await connection.execute(select(_limit()))
            return (await connection.execute(query)).all()


def _limit() -> Any:
    """For this transaction alone: a pooler may hand the connection to others."""
    return func.set_config("statement_timeout", str(int(STATEMENT_TIMEOUT * 1000)), True)


def _undefined(error: DBAPIError) -> bool:
    return isinstance(error, ProgrammingError) and getattr(error.orig, "sqlstate", None) in UNDEFINED
