"""The whole of Pillarbox on this machine, with a bot, a chat page and data that stay."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg
from psycopg import sql

from pillarbox import db
from pillarbox.errors import PillarboxError, SettingError
from pillarbox_solo import environment
from pillarbox_solo.errors import LauncherError
from pillarbox_solo.lock import FolderLock
from pillarbox_solo.ports import HOST
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.readiness import until_ready
from pillarbox_solo.server import Server
from pillarbox_solo.supervisor import Service, Supervisor
from pillarbox_solo.terminal import Terminal
from pillarbox_solo.valkey import ValkeyServer

SERVICES = ("simulator", "ingest", "dispatcher", "sender", "admin")
DATABASE = "pillarbox"
KILL_AFTER = 15.0  # past STOP_TIMEOUT, within which a service ends by itself
WATCH_EVERY = 0.5
HOPELESS = 3  # crashes of a service that was never ready


class Demo:
    """`folder` keeps the data and the settings; `root` is where the bot's module is found."""

    def __init__(self, folder: Path, root: Path, given: Mapping[str, str], terminal: Terminal) -> None:
        self._folder = folder.absolute()
        self._root = root.absolute()
        self._given = given
        self._terminal = terminal
        self._began = time.monotonic()
        self._servers: list[Server] = []
        self._failure: PillarboxError | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set and everything has ended. Raises PillarboxError, with nothing left running."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FolderLock.take(self._folder)
        try:
            await self._run(stop)
        finally:
            lock.release()
        if self._failure is not None:
            raise self._failure

    async def _run(self, stop: asyncio.Event) -> None:
        supervisor = Supervisor(self._folder / "run", self._terminal.event, KILL_AFTER)
        supervisor.end_orphans(self._services({}))
        settings = self._settings()
        try:
            await self._prepare(settings["DATABASE_URL"])
            if not stop.is_set():
                await self._serve(supervisor, settings, stop)
        finally:
            self._stop_servers()

    def _settings(self) -> dict[str, str]:
        file = self._folder / "env"
        settings = environment.compose(environment.read(file), self._given, self._folder)
        for name, port in environment.replaced(settings).items():
            self._terminal.line(f"  {name}: {environment.PORTS[name]} is taken, {port} it is")
        settings |= self._build_servers(settings)
        environment.write(file, settings)
        return settings

    def _build_servers(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Where the servers will be."""
        programs = {n: Path(self._given[n]) for n in ("POSTGRES_BIN", "VALKEY_BIN") if self._given.get(n)}
        postgres = PostgresServer(
            self._folder / "postgres", int(settings["POSTGRES_PORT"]), programs=programs.get("POSTGRES_BIN")
        )
        valkey = ValkeyServer(
            self._folder / "valkey", int(settings["VALKEY_PORT"]), programs=programs.get("VALKEY_BIN")
        )
        self._servers = [postgres, valkey]
        return {"DATABASE_URL": postgres.database(DATABASE), "REDIS_URL": valkey.url}

    async def _prepare(self, database_url: str) -> None:
        for server in self._servers:
            with self._terminal.step(f"{server.name} on {HOST}:{server.port}"):
                server.start()
        with self._terminal.step("Tables"):
            make_database(database_url)
            db.migrate(database_url)
        await asyncio.sleep(0)  # a Ctrl+C that came meanwhile is seen now

    def _services(self, settings: Mapping[str, str]) -> list[Service]:
        """The simulator ends last: the sender still delivers to it."""
        child = environment.for_child(settings, self._given, self._root)
        return [
            Service(name, (sys.executable, "-m", mark), mark, child, last=name == "simulator")
            for name, mark in ((name, f"pillarbox_{name}") for name in SERVICES)
        ]

    async def _serve(self, supervisor: Supervisor, settings: Mapping[str, str], stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self._supervise(supervisor, self._services(settings), stop))
            watching = group.create_task(self._watch(stop))
            starting = group.create_task(self._announce(supervisor, settings, stop))
            await stop.wait()
            starting.cancel()
            self._terminal.line("\n  Stopping; what is being handled or sent is finished first")
            await running
            watching.cancel()

    async def _supervise(
        self, supervisor: Supervisor, services: Sequence[Service], stop: asyncio.Event
    ) -> None:
        wrong = await supervisor.run(services, stop)
        if wrong is not None:
            self._failure = SettingError(wrong)

    async def _watch(self, stop: asyncio.Event) -> None:
        """A database server that died is started again on its data."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            for server in self._servers:
                if not server.alive:
                    self._terminal.event(server.name, "has died; it is started again")
                    try:
                        server.start()
                    except PillarboxError as error:
                        self._failure = error
                        stop.set()
                        return

    async def _announce(
        self, supervisor: Supervisor, settings: Mapping[str, str], stop: asyncio.Event
    ) -> None:
        for name in SERVICES:
            port = int(settings[f"{name.upper()}_PORT"])
            with self._terminal.step(f"{name} on {HOST}:{port}"):
                failing = await until_ready(port, lambda: supervisor.crashes[name] >= HOPELESS)  # noqa: B023
            if failing is not None:
                self._failure = LauncherError(
                    f"{name} does not become ready: {failing}; what it said is above"
                )
                stop.set()
                return
        self._terminal.line(self._where_to_click(settings))

    def _where_to_click(self, settings: Mapping[str, str]) -> str:
        bold = self._terminal.bold
        chat, admin = f"{settings['TELEGRAM_API_BASE']}/", f"http://{HOST}:{settings['ADMIN_PORT']}/"
        return f"""
  {bold(f"Pillarbox is up, after {time.monotonic() - self._began:.1f} s")}

    Chat page   {bold(chat)}   write hello there
    Admin page  {bold(admin)}   its token: {settings["ADMIN_TOKENS"].rpartition(":")[2]}
    Settings    {self._folder / "env"}

  Ctrl+C stops all of it; the data stays.
"""

    def _stop_servers(self) -> None:
        with ExitStack() as stack:
            for server in self._servers:
                stack.callback(self._stop_server, server)

    def _stop_server(self, server: Server) -> None:
        if server.alive:
            with self._terminal.step(f"{server.name} stops"):
                server.stop()
        else:
            server.stop()


def make_database(url: str) -> None:
    """The database that `url` names, unless it is there."""
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
