"""The Valkey of `pillarbox run`: a child process, which a crash of ours leaves behind for our next start."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from pillarbox.backoff import Backoff
from pillarbox.telemetry import get_logger
from pillarbox_solo.errors import LauncherError, PortTaken
from pillarbox_solo.ports import free_port
from pillarbox_solo.valkey import ValkeyServer

WATCH_EVERY = 0.5

log = get_logger()


class Queue:
    """On `port`, or where that is 0 on the port of the last time, so that other apps still find the door."""

    def __init__(self, folder: Path, port: int = 0, programs: Path | None = None) -> None:
        self._folder = folder.absolute()
        self._wanted = port
        self._programs = programs
        self._server = self._on(port or self._last_port())

    def _on(self, port: int) -> ValkeyServer:
        return ValkeyServer(self._folder, port, programs=self._programs)

    def start(self) -> str:
        """Its URL, once it answers. Raises LauncherError."""
        try:
            self._server.start()
        except PortTaken:
            if self._wanted:
                raise
            self._server = self._on(free_port())
            self._server.start()
        self._port_file.write_text(f"{self._server.port}\n", encoding="utf-8")
        return self._server.url

    def stop(self) -> None:
        """The clean stop."""
        self._server.stop()

    async def watch(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Starts it again whenever it has died, until this is cancelled; who uses it waits for it."""
        backoff = Backoff()
        while True:
            await sleep(WATCH_EVERY)
            if self._server.alive:
                backoff.reset()
                continue
            log.error("Valkey has died; it is started again", log=str(self._server.log))
            try:
                self._server.relaunch()
            except LauncherError as error:
                log.error("Valkey cannot be started", reason=str(error))
            await sleep(backoff.delay())

    @property
    def _port_file(self) -> Path:
        return self._folder / "port"

    def _last_port(self) -> int:
        try:
            return int(self._port_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0
