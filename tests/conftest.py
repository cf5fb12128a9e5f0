from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.environment import scrub
from tests.support.servers import fresh_database, make_template, postgres_programs, running, session_folder

scrub()

from pillarbox_solo.postgres import PostgresServer  # noqa: E402 - nothing of ours before the scrub
from pillarbox_solo.valkey import ValkeyServer  # noqa: E402
from tests.support.simulator import control, http, simulator, webhook  # noqa: E402, F401


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    with session_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres_server(servers_folder: Path) -> Iterator[PostgresServer]:
    """The session's PostgreSQL, with the migrated template. A test that kills servers starts its own."""
    server = PostgresServer(servers_folder / "postgres", programs=postgres_programs())
    with running(server):
        make_template(server)
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, migrated database."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def valkey_server(servers_folder: Path) -> Iterator[ValkeyServer]:
    """The session's Valkey. A test that kills servers starts its own."""
    server = ValkeyServer(servers_folder / "valkey")
    with running(server):
        yield server


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """An empty Valkey."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server.url
