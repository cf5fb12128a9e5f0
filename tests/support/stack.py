"""The whole product as real processes on free ports, each of which can be killed and started again.

On PostgreSQL, a process for each service; on SQLite, one `pillarbox run` with a Valkey that it starts itself.
"""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from pillarbox import db
from pillarbox_solo import processes
from pillarbox_solo.ports import free_port
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.valkey import ValkeyServer

BOT_ID = 700_001
TOKEN = f"{BOT_ID}:for-tests-only-AAAAAAAAAAAAAAAAAAAAAAAA"
SECRET = "for-tests-only"
ADMIN_TOKEN = "for-tests-only-admin"
MODULES = {
    "postgres": ("simulator", "ingest", "dispatcher", "sender", "admin"),
    "sqlite": ("simulator", "run"),
}
PORTS = {"run": "INGEST_PORT"}


@dataclass(slots=True)
class Service:
    """One process of a service; `name` is unique in the stack (`sender-2`)."""

    name: str
    module: str
    environment: Mapping[str, str]
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    command: Sequence[str] = ()
    killed_at: dict[int, int] = field(default_factory=dict)
    """When each killed process of it was gone: pid to monotonic ns."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command or [sys.executable, "-m", f"pillarbox_{self.module}"],
                env=dict(self.environment),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> int:
        """`kill -9`; returns the pid that is gone now."""
        assert self.process is not None
        pid = self.process.pid
        self.process.kill()
        self.process.wait()
        self.killed_at.setdefault(pid, time.monotonic_ns())
        return pid

    def ended(self) -> bool:
        """Whether its process ended by itself; when that was seen is noted."""
        if self.process is None or self.process.poll() is None:
            return False
        self.killed_at.setdefault(self.process.pid, time.monotonic_ns())
        return True

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, patience: float = 20.0) -> int:
        """SIGTERM, and its exit code; SIGKILL after `patience` seconds."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def ready(self, patience: float = 60.0) -> None:
        """Returns when its `/readyz` says so; RuntimeError with the log's end when it does not in time."""
        until = time.monotonic() + patience
        while not _ok(f"{self.url}/readyz"):
            if time.monotonic() > until or (self.process and self.process.poll() is not None):
                raise RuntimeError(f"{self.name} is not ready:\n{self.tail()}")
            time.sleep(0.05)

    def tail(self, size: int = 3000) -> str:
        return self.log.read_bytes()[-size:].decode(errors="replace") if self.log.exists() else ""


def _ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=4) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


class RunsValkey:
    """The one that `pillarbox run` starts, and starts again whenever it is dead."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def kill(self) -> None:
        while (pid := processes.read_pid(self.folder / "valkey.pid")) is None:
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)

    def start(self) -> None:
        """Not ours to do."""

    stop = start


class Stack:
    """PostgreSQL, Valkey, the simulator, and as many processes of each service as asked for."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str], counts: Mapping[str, int], store: str
    ) -> None:
        self.folder = folder
        self.store = store
        self.postgres = PostgresServer(folder / "postgres")
        self.valkey: ValkeyServer | RunsValkey = (
            ValkeyServer(folder / "valkey") if store == "postgres" else RunsValkey(folder / "valkey")
        )
        self.database_url = (
            self.postgres.database("pillarbox") if store == "postgres" else str(folder / "pillarbox.db")
        )
        self.services: dict[str, Service] = {}
        taken = {self.postgres.port, self.valkey.port}
        ports = {}
        for module in MODULES[store]:
            for number in range(1, counts.get(module, 1) + 1):
                name = module if counts.get(module, 1) == 1 else f"{module}-{number}"
                ports[name] = free_port(taken=taken)
                taken.add(ports[name])
        common = self._common(ports, settings)
        for name, port in ports.items():
            module = name.partition("-")[0]
            own = {PORTS.get(module, f"{module.upper()}_PORT"): str(port), "WORKER_NAME": name}
            command = [sys.executable, "-m", "pillarbox_solo", "run"] if module == "run" else ()
            self.services[name] = Service(
                name, module, {**common, **own}, port, folder / f"{name}.log", command=command
            )

    def _common(self, ports: Mapping[str, int], settings: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")
        }
        ours = {
            "PYTHONPATH": os.getcwd(),
            "LOG_FORMAT": "json",
            "DATABASE_URL": self.database_url,
            **self._queue(),
            "BOT_TOKENS": TOKEN,
            "WEBHOOK_SECRET": SECRET,
            "WEBHOOK_URL": f"http://127.0.0.1:{ports.get('ingest', ports.get('run', 0))}",
            "TELEGRAM_API_BASE": f"http://127.0.0.1:{ports['simulator']}",
            "ADMIN_TOKENS": f"tests:read+act+payload:{ADMIN_TOKEN}",
        }
        if self.store == "sqlite":
            ours["ADMIN_PORT"] = str(free_port(taken=ports.values()))
        hosts = {f"{module.upper()}_HOST": "127.0.0.1" for modules in MODULES.values() for module in modules}
        return {**kept, **ours, **hosts, **settings}

    def _queue(self) -> dict[str, str]:
        if isinstance(self.valkey, ValkeyServer):
            return {"REDIS_URL": self.valkey.url}
        return {"VALKEY_FOLDER": str(self.valkey.folder), "VALKEY_PORT": str(self.valkey.port)}

    @property
    def simulator(self) -> Service:
        return self.services["simulator"]

    def of(self, module: str) -> list[Service]:
        return [service for service in self.services.values() if service.module == module]

    def start(self) -> None:
        if self.store == "postgres":
            self._start_servers()
        for service in self.services.values():
            service.start()
        for service in self.services.values():
            service.ready()

    def _start_servers(self) -> None:
        self.postgres.start()
        self.valkey.start()
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE pillarbox")
        db.migrate(self.database_url)

    def stop(self) -> None:
        for service in reversed(self.services.values()):
            if service.process is not None:
                service.process.terminate()
        for service in self.services.values():
            service.stop()
        self.valkey.stop()
        self.postgres.stop()

    @property
    def killed_at(self) -> dict[int, int]:
        return {pid: at for service in self.services.values() for pid, at in service.killed_at.items()}


@contextmanager
def running(
    folder: Path, settings: Mapping[str, str], *, store: str = "postgres", **counts: int
) -> Iterator[Stack]:
    """`running(tmp_path, {"HANDLERS": …}, dispatcher=2, admin=0)`; everything is stopped at the end."""
    stack = Stack(folder, settings, counts, store)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
