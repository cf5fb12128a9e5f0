"""Valkey on a data folder of ours, keeping every write that it confirmed."""

import signal
import subprocess
from pathlib import Path
from typing import ClassVar

from pillarbox_solo.binaries import valkey_server
from pillarbox_solo.server import Server, says

SETTINGS = {
    "bind": "127.0.0.1",
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "always",
    "save": "",
    "maxmemory-policy": "noeviction",
    "set-proc-title": "no",  # its command line is how an orphan is known
    "always-show-logo": "no",
}


class ValkeyServer(Server):
    name: ClassVar[str] = "Valkey"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path, port: int = 0, *, programs: Path | None = None) -> None:
        super().__init__(folder, port)
        self._programs = programs

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid_file(self) -> Path:
        return self.folder / "valkey.pid"

    def _prepare(self) -> None:
        self.data.mkdir(mode=0o700, exist_ok=True)

    def _spawn(self, log: int) -> subprocess.Popen[bytes]:
        settings = SETTINGS | {"port": str(self.port), "dir": str(self.data), "pidfile": str(self.pid_file)}
        flags = [part for name, value in settings.items() for part in (f"--{name}", value)]
        return subprocess.Popen(  # noqa: S603
            [valkey_server(self._programs), *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _answers(self, pid: int) -> bool:
        return says(self.port, b"PING\r\n", b"+PONG")
