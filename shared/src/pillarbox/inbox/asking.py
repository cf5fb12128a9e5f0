"""One statement on a connection, by libpq's own calls.

A reply waits for three statements, one after the other, and psycopg's cursors, which are made for every use
of a database, take 0.1 ms more for each of them where the process was idle before.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from psycopg import errors, generators
from psycopg.adapt import Buffer, Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from pillarbox.errors import StorageRefused, StorageUnavailable
from pillarbox.inbox.arrays import Packed

if TYPE_CHECKING:
    from pillarbox.inbox.connections import AsyncLink

Row: TypeAlias = tuple[Any, ...]

MOST_PREPARED = 200
STALE = ("0A000", "26000")
"""A prepared statement whose tables have changed since, or that is gone."""


class Asking:
    """What a connection has prepared, and how it reads what comes. Behind a pooler nothing is prepared."""

    def __init__(self, link: "AsyncLink") -> None:
        self._link = link
        self._loading = Transformer(link)
        self._prepared: dict[str, bytes] = {}

    async def ask(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement.

        Raises psycopg.Error; StorageRefused for a text that no database takes; StorageUnavailable where its
        tables have changed since it was prepared; TypeError for a value of another type.
        """
        values, formats, types = given(parameters)
        pgconn = self._link.pgconn
        if self._link.pooled or len(self._prepared) >= MOST_PREPARED:
            pgconn.send_query_params(query.encode(), values, types, formats, Format.BINARY)
        else:
            name = self._prepared.get(query) or await self._prepare(query, types)
            pgconn.send_query_prepared(name, values, formats, Format.BINARY)
        result = await self._result()
        self._loading.set_pgresult(result)
        rows = self._loading.load_rows(0, result.ntuples, tuple)
        self._loading.set_pgresult(None)
        return rows

    async def _prepare(self, query: str, types: Sequence[int]) -> bytes:
        name = b"pillarbox_%d" % len(self._prepared)
        self._link.pgconn.send_prepare(name, query.encode(), types)
        await self._result()
        self._prepared[query] = name
        return name

    async def _result(self) -> PGresult:
        result: PGresult
        *_, result = await self._link.wait(generators.execute(self._link.pgconn))
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return result
        error = errors.error_from_result(result)
        if error.sqlstate in STALE:
            self._link.pgconn.finish()
            raise StorageUnavailable("the tables have changed under a connection, which is made again")
        raise error


def given(parameters: Sequence[Any]) -> tuple[list[Buffer | None], list[Format], list[int]]:
    """Values, formats and types; type 0 is left to the server, which knows it by the statement."""
    values: list[Buffer | None] = []
    formats: list[Format] = []
    types: list[int] = []
    for parameter in parameters:
        if isinstance(parameter, Packed):
            values.append(parameter.data)
            formats.append(Format.BINARY)
            types.append(parameter.array)
        elif isinstance(parameter, bytes):
            values.append(parameter)
            formats.append(Format.BINARY)
            types.append(0)
        else:
            values.append(_text(parameter))
            formats.append(Format.TEXT)
            types.append(0)
    return values, formats, types


def _text(parameter: object) -> bytes | None:
    match parameter:
        case None:
            return None
        case bool():
            return b"t" if parameter else b"f"
        case int() | float():
            return str(parameter).encode()
        case str():
            if "\0" in parameter:
                raise StorageRefused("PostgreSQL takes no NUL in a text")
            return parameter.encode()
        case datetime():
            return parameter.isoformat().encode()
        case _:
            raise TypeError(f"a parameter of type {type(parameter).__name__}")
