"""Statements by libpq's own calls: values, errors, and what was prepared before its tables changed."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from pillarbox.errors import StorageRefused, StorageUnavailable
from pillarbox.inbox.arrays import Bytes, Int8s, Texts
from pillarbox.inbox.asking import MOST_PREPARED
from pillarbox.inbox.connections import AsyncLink, Pool, connect
from tests.support.inbox import query


@pytest.fixture
async def link(postgres_url: str) -> AsyncIterator[AsyncLink]:
    link = await connect(postgres_url)
    yield link
    link.pgconn.finish()


MOMENT = datetime(2026, 11, 29, 12, 30, 0, 123456, UTC)
VALUES = """
SELECT $1::bigint, $2::text, $3::bool, $4::bytea, $5::float8, $6::timestamptz, $7::bigint[], $8::text[],
       $9::bytea[], $10::text
"""


async def test_every_kind_of_value_goes_and_comes(link: AsyncLink) -> None:
    given = [
        -(1 << 63),
        "é\n",
        True,
        b"\0\xff",
        0.1,
        MOMENT,
        Int8s([1, None]),
        Texts([b"a", None]),
        Bytes([b"\0"]),
        None,
    ]
    for _ in range(2):
        (row,) = await link.asking.ask(VALUES, given)
        assert list(row) == [
            *given[:5],
            MOMENT,
            [1, None],
            ["a", None],
            [b"\0"],
            None,
        ]


async def test_a_large_value_is_sent_in_parts(link: AsyncLink) -> None:
    body = bytes(range(256)) * (1 << 16)
    ((length, back),) = await link.asking.ask("SELECT octet_length($1::bytea), $1::bytea", [body])
    assert (length, bytes(back)) == (len(body), body)


async def test_what_no_database_takes_is_refused_and_the_connection_goes_on(postgres_url: str) -> None:
    pool = Pool(postgres_url, 1)
    for given in ("a\0b", "x"):
        with pytest.raises(StorageRefused):
            await pool.execute("SELECT $1::text::int", [given])
    assert await pool.execute("SELECT $1::text", ["x"]) == [("x",)]
    await pool.close()


async def test_an_unknown_type_is_a_bug_that_is_said(link: AsyncLink) -> None:
    with pytest.raises(TypeError, match="type set"):
        await link.asking.ask("SELECT $1::text", [{"x"}])


async def test_a_statement_whose_table_has_changed_is_asked_on_a_new_connection(postgres_url: str) -> None:
    query(postgres_url, "CREATE TABLE t AS SELECT 1 AS a")
    pool = Pool(postgres_url, 1)
    assert await pool.execute("SELECT * FROM t") == [(1,)]
    query(postgres_url, "ALTER TABLE t ADD b int")
    with pytest.raises(StorageUnavailable):
        await pool.execute("SELECT * FROM t")
    assert await pool.execute("SELECT * FROM t") == [(1, None)]
    await pool.close()


async def test_what_is_prepared_is_bounded(link: AsyncLink) -> None:
    for number in range(MOST_PREPARED + 5):
        assert await link.asking.ask(f"SELECT {number}") == [(number,)]
    ((count,),) = await link.asking.ask("SELECT count(*) FROM pg_prepared_statements")
    assert count == MOST_PREPARED
