"""What the demo runs: one process on SQLite, or one for each service around PostgreSQL."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import psycopg
from psycopg import sql

from pillarbox import db
from pillarbox_solo.ports import HOST
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.server import Server
from pillarbox_solo.supervisor import Service
from pillarbox_solo.terminal import Terminal
from pillarbox_solo.valkey import ValkeyServer

DATABASE = "pillarbox"


class Store(ABC):
    """`folder` keeps the data; `given` is the person's own environment."""

    parts: ClassVar[Mapping[str, str]]
    """The processes in the order of their start, with the setting of each one's port."""

    ports: ClassVar[Sequence[str]]
    """The settings of all ports in use."""

    def __init__(self, folder: Path, given: Mapping[str, str]) -> None:
        self._folder = folder
        self._given = given
        self.servers: list[Server] = []

    @abstractmethod
    def place(self, settings: Mapping[str, str]) -> dict[str, str]:
        """DATABASE_URL and REDIS_URL; from now on there are `servers`."""

    @abstractmethod
    def prepare(self, settings: Mapping[str, str], terminal: Terminal) -> None:
        """What has to be there before a service starts. Raises PillarboxError."""

    @abstractmethod
    def command(self, part: str) -> Sequence[str]: ...

    def for_child(self, settings: Mapping[str, str]) -> dict[str, str]:
        return dict(settings)

    def services(self, environment: Mapping[str, str]) -> list[Service]:
        """The simulator ends last: the sender still delivers to it."""
        return [
            Service(part, command, command[2], environment, last=part == "simulator")
            for part in self.parts
            for command in [self.command(part)]
        ]

    def _programs(self, name: str) -> Path | None:
        return Path(self._given[name]) if self._given.get(name) else None


class SQLiteStore(Store):
    parts: ClassVar[Mapping[str, str]] = {"simulator": "SIMULATOR_PORT", "run": "INGEST_PORT"}
    ports = ("INGEST_PORT", "ADMIN_PORT", "SIMULATOR_PORT", "VALKEY_PORT")

    def place(self, settings: Mapping[str, str]) -> dict[str, str]:
        return {
            "DATABASE_URL": f"sqlite:///{self._folder / f'{DATABASE}.db'}",
            "REDIS_URL": f"redis://{HOST}:{settings['VALKEY_PORT']}/0",
        }

    def prepare(self, settings: Mapping[str, str], terminal: Terminal) -> None:
        """Nothing: `pillarbox run` makes its file, and starts its own Valkey."""

    def command(self, part: str) -> Sequence[str]:
        if part == "run":
            return sys.executable, "-m", "pillarbox_solo", "run"
        return sys.executable, "-m", f"pillarbox_{part}"

    def for_child(self, settings: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in settings.items() if name != "REDIS_URL"}


class PostgresStore(Store):
    parts: ClassVar[Mapping[str, str]] = {
        "simulator": "SIMULATOR_PORT",
        "ingest": "INGEST_PORT",
        "dispatcher": "DISPATCHER_PORT",
        "sender": "SENDER_PORT",
        "admin": "ADMIN_PORT",
    }
    ports = (*parts.values(), "POSTGRES_PORT", "VALKEY_PORT")

    def place(self, settings: Mapping[str, str]) -> dict[str, str]:
        postgres = PostgresServer(
            self._folder / "postgres",
            int(settings["POSTGRES_PORT"]),
            programs=self._programs("POSTGRES_BIN"),
        )
        valkey = ValkeyServer(
            self._folder / "valkey", int(settings["VALKEY_PORT"]), programs=self._programs("VALKEY_BIN")
        )
        self.servers = [postgres, valkey]
        return {"DATABASE_URL": postgres.database(DATABASE), "REDIS_URL": valkey.url}

    def prepare(self, settings: Mapping[str, str], terminal: Terminal) -> None:
        for server in self.servers:
            with terminal.step(f"{server.name} on {HOST}:{server.port}"):
                server.start()
        with terminal.step("Tables"):
            make_database(settings["DATABASE_URL"])
            db.migrate(settings["DATABASE_URL"])

    def command(self, part: str) -> Sequence[str]:
        return sys.executable, "-m", f"pillarbox_{part}"


STORES: Mapping[str, type[Store]] = {"sqlite": SQLiteStore, "postgres": PostgresStore}


def make_database(url: str) -> None:
    """The database that `url` names, unless it is there."""
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
