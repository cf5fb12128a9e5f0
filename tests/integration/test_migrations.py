"""The schema: built from nothing, by many at once, undone, and the same as the tables that the code knows."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import sql
from sqlalchemy import create_engine
from typer.testing import CliRunner

from pillarbox import db
from pillarbox.cli import app
from pillarbox.db.schema import metadata
from pillarbox.db.upgrade import config, head, upgrade
from pillarbox.db.version import check_revision
from pillarbox.errors import SettingError, StorageUnavailable
from pillarbox_solo.postgres import PostgresServer


@pytest.fixture
def empty_url(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> str:
    name = f"empty_{abs(hash(request.node.name))}"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return postgres_server.database(name)


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {str(name) for (name,) in rows}


def test_the_constant_is_the_newest_migration() -> None:
    assert head() == db.REVISION


def test_many_starters_at_once_build_it_once(empty_url: str) -> None:
    with ThreadPoolExecutor(4) as starters:
        list(starters.map(db.migrate, [empty_url] * 4))
    assert tables(empty_url) == set(metadata.tables) | {"alembic_version"}


def test_migrated_is_what_the_code_knows(postgres_url: str) -> None:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(postgres_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_all_the_way_back_and_forth(empty_url: str) -> None:
    upgrade(empty_url)
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(empty_url))
    with engine.connect() as connection:
        alembic = config()
        alembic.attributes["connection"] = connection
        command.downgrade(alembic, "base")
    engine.dispose()
    assert tables(empty_url) == {"alembic_version"}
    upgrade(empty_url)
    assert set(metadata.tables) < tables(empty_url)


@pytest.mark.parametrize(
    ("found", "fix"),
    [
        (None, "run `pillarbox migrate`"),
        ("0000", "run `pillarbox migrate`"),
        ("9999", "newer than this version.*start the version that migrated it"),
    ],
)
def test_another_revision_is_refused_with_the_fix(found: str | None, fix: str) -> None:
    with pytest.raises(SettingError, match=fix):
        check_revision(found)
    check_revision(db.REVISION)


def test_a_newer_database_is_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SettingError, match="newer than this version"):
        db.migrate(postgres_url)


def test_no_database_is_passing(postgres_server: PostgresServer) -> None:
    with pytest.raises(StorageUnavailable):
        db.migrate(postgres_server.database("there_is_none"))


def test_the_command_line_migrates_and_checks(empty_url: str, valkey_url: str) -> None:
    settings = {
        "DATABASE_URL": empty_url,
        "REDIS_URL": valkey_url,
        "BOT_TOKENS": "7:AAAAAAAAAAAAAAAA",
        "WEBHOOK_SECRET": "secret",
    }
    before = CliRunner().invoke(app, ["check", "ingest"], env=settings)
    assert (before.exit_code, "run `pillarbox migrate`" in before.output) == (2, True)
    assert CliRunner().invoke(app, ["migrate"], env=settings).exit_code == 0
    after = CliRunner().invoke(app, ["check", "ingest", "sender"], env=settings)
    assert (after.exit_code, after.output) == (0, "ingest: ok\nsender: ok\n")
