"""The whole of Pillarbox on this machine, with a bot, a chat page and data that stay."""

import asyncio
import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pillarbox.errors import PillarboxError, SettingError
from pillarbox_solo import bot_trial, environment
from pillarbox_solo.errors import LauncherError
from pillarbox_solo.lock import FolderLock
from pillarbox_solo.ports import HOST
from pillarbox_solo.readiness import until_ready
from pillarbox_solo.server import Server
from pillarbox_solo.stores import STORES, Store
from pillarbox_solo.supervisor import Supervisor
from pillarbox_solo.terminal import Terminal

KILL_AFTER = 15.0  # past STOP_TIMEOUT, within which a service ends by itself
WATCH_EVERY = 0.5
PUSHED = '{"method": "sendMessage", "params": {"chat_id": 1001, "text": "hi"}}'  # to Ada of the chat page
HOPELESS = 3  # crashes of a service that was never ready


class Demo:
    """`folder` keeps the data and the settings; `root` is where the bot's module is found."""

    def __init__(
        self, folder: Path, root: Path, given: Mapping[str, str], terminal: Terminal, store: type[Store]
    ) -> None:
        self._folder = folder.absolute()
        self._root = root.absolute()
        self._given = given
        self._terminal = terminal
        self._began = time.monotonic()
        self._store = store(self._folder, given)
        self._failure: PillarboxError | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set and everything has ended. Raises PillarboxError, with nothing left running."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FolderLock.take(self._folder, "make demo FOLDER=…")
        try:
            await self._run(stop)
        finally:
            lock.release()
        if self._failure is not None:
            raise self._failure

    async def _run(self, stop: asyncio.Event) -> None:
        supervisor = Supervisor(self._folder / "run", self._terminal.event, KILL_AFTER)
        for store in STORES.values():  # the last start may have had the other one
            supervisor.end_orphans(store(self._folder, self._given).services({}))
        settings = self._settings()
        if not await self._bot_is_usable(settings, stop):
            return
        try:
            self._store.prepare(settings, self._terminal)
            await asyncio.sleep(0)  # a Ctrl+C that came meanwhile is seen now
            if not stop.is_set():
                await self._serve(supervisor, settings, stop)
        finally:
            self._stop_servers()

    def _settings(self) -> dict[str, str]:
        file = self._folder / "env"
        settings = environment.compose(environment.read(file), self._given, self._folder, self._store.ports)
        for name, port in environment.replaced(settings, self._given).items():
            self._terminal.line(f"  {name}: {environment.PORTS[name]} is taken, {port} it is")
        settings |= self._store.place(settings)
        environment.write(file, settings)
        return settings

    async def _bot_is_usable(self, settings: Mapping[str, str], stop: asyncio.Event) -> bool:
        """Asked first, because only the last process to start would say so. False: `stop` came."""
        child = environment.for_child(self._store.for_child(settings), self._given, self._root)
        with self._terminal.step(f"The bot, {settings['HANDLERS']}"):
            wrong = await bot_trial.tried(child, stop)
            if wrong is not None:
                raise SettingError(wrong)
        return not stop.is_set()

    async def _serve(self, supervisor: Supervisor, settings: Mapping[str, str], stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self._supervise(supervisor, settings, stop))
            watching = group.create_task(self._watch(stop))
            starting = group.create_task(self._announce(supervisor, settings, stop))
            await stop.wait()
            starting.cancel()
            self._terminal.line("\n  Stopping; what is being handled or sent is finished first")
            await running
            watching.cancel()

    async def _supervise(
        self, supervisor: Supervisor, settings: Mapping[str, str], stop: asyncio.Event
    ) -> None:
        child = environment.for_child(self._store.for_child(settings), self._given, self._root)
        wrong = await supervisor.run(self._store.services(child), stop)
        if wrong is not None:
            self._failure = SettingError(wrong)

    async def _watch(self, stop: asyncio.Event) -> None:
        """A database server that died is started again on its data."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            for server in self._store.servers:
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
        for name, setting in self._store.parts.items():
            port = int(settings[setting])
            with self._terminal.step(f"{name} on {HOST}:{port}"):
                failing = await until_ready(
                    port,
                    lambda: supervisor.pid(name),  # noqa: B023
                    lambda: supervisor.crashes[name] >= HOPELESS,  # noqa: B023
                )
            if failing is not None:
                end = supervisor.ends.get(name)
                self._failure = LauncherError(
                    f"{name} {end}" if end else f"{name} does not become ready: {failing}"
                )
                stop.set()
                return
        self._terminal.line(self._where_to_click(settings))

    def _where_to_click(self, settings: Mapping[str, str]) -> str:
        bold = self._terminal.bold
        chat, admin = f"{settings['TELEGRAM_API_BASE']}/", f"http://{HOST}:{settings['ADMIN_PORT']}/"
        program, folder = Path(sys.executable).with_name("pillarbox"), self._shown(self._folder)
        one = next(name for name in self._store.parts if name in ("run", "sender"))
        return f"""
  {bold(f"Pillarbox is up, after {time.monotonic() - self._began:.1f} s")}

    Chat page   {bold(chat)}   write /start there
    Admin page  {bold(admin)}   its token: {settings["ADMIN_TOKENS"].rpartition(":")[2]}
    Any app     {self._shown(program)} push --env {folder}/env '{PUSHED}'
    Processes   their pids are in {folder}/run: kill -9 $(cat {folder}/run/{one}.pid)
    Settings    {folder}/env

  Ctrl+C stops all of it; the data stays.
"""

    def _shown(self, path: Path) -> str:
        """As short as a person in the folder of the project would write it."""
        return shlex.quote(str(path.relative_to(self._root) if path.is_relative_to(self._root) else path))

    def _stop_servers(self) -> None:
        with ExitStack() as stack:
            for server in self._store.servers:
                stack.callback(self._stop_server, server)

    def _stop_server(self, server: Server) -> None:
        if server.alive:
            with self._terminal.step(f"{server.name} stops"):
                server.stop()
        else:
            server.stop()
