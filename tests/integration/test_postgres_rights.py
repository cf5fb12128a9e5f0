"""The roles of docs/postgresql.md, as they stand there: one migrates, the other works and can do no more."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from pillarbox import db
from pillarbox.inbox import Failed, Finished, Malformed
from pillarbox_solo.postgres import PostgresServer
from tests.support.inbox import BOT, incoming, opened, query

PAGE = Path("docs/postgresql.md")
NAME = "test_rights"
PASSWORD = "for-tests-only"


@pytest.fixture
def urls(postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    """Of the owner and of the app."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {NAME}".encode())
    admin = postgres_server.database(NAME)
    (statements,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    roles = ("pillarbox_owner", "pillarbox_app")
    query(admin, statements)
    for role in roles:
        query(admin, f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
    yield as_role(admin, roles[0]), as_role(admin, roles[1])
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)".encode())
        for role in roles:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}:{PASSWORD}@{parts.hostname}:{parts.port}"))


async def test_the_apps_role_can_do_all_its_work_and_change_no_table(urls: tuple[str, str]) -> None:
    owner, app = urls
    db.migrate(owner)

    async def file(rows: Sequence[object]) -> None: ...

    async with opened(app) as inbox:
        await inbox.try_lock([BOT])
        await inbox.accept([incoming(n, lane=f"chat:{n}") for n in range(4)])
        one, two, *rest = await inbox.claim(4)
        renewer = inbox.renewer()
        assert renewer.renew([one.token]) == frozenset()
        renewer.close()
        await inbox.turn([Finished(one.token, (b"x",)), Failed(two.token, "E")], 0)
        await inbox.turn([Failed(lease.token, "E") for lease in rest], 0)
        assert await inbox.relay(file, 10) == 1
        await inbox.malformed(Malformed(BOT, "nothing", b"{"))
        assert (await inbox.requeue(BOT, [two.update_id], "tests")).moved == 1
        assert (await inbox.discard(BOT, None, "tests")).moved == 2
        await inbox.pin(BOT, 1, "A" * 40, "tests")
        await inbox.sweep()
        async with inbox.alone("bot") as ours:
            assert ours
    for statement in ("ALTER TABLE updates ADD COLUMN x int", "DROP TABLE seen", "CREATE TABLE x (n int)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            query(app, statement)
