"""A database server as a child process: start, stop, kill, and start again on the same data and port."""

import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from pillarbox_solo import processes
from pillarbox_solo.errors import LauncherError, PortTaken
from pillarbox_solo.lock import FolderLock
from pillarbox_solo.ports import free_port, is_free

STEP = 0.02
ADDRESS_IN_USE = "Address already in use"


class Server(ABC):
    """Listens on 127.0.0.1 alone. `folder` is its own: data, lock and log."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder.resolve()
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: FolderLock | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    @abstractmethod
    def data(self) -> Path:
        """The folder that is in the server's command line, by which an orphan is known."""

    @property
    @abstractmethod
    def pid_file(self) -> Path: ...

    @abstractmethod
    def _prepare(self) -> None:
        """Makes the data folder when there is none."""

    @abstractmethod
    def _spawn(self, log: int) -> subprocess.Popen[bytes]: ...

    @abstractmethod
    def _answers(self, pid: int) -> bool:
        """Whether it takes connections now."""

    def _passing(self, log: str) -> bool:
        """Whether a server that ended with this log would start a moment later."""
        return False

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, patience: float = 60.0) -> None:
        """Returns when it answers. An orphan on the same folder is ended first.

        Raises FolderInUse, PortTaken or LauncherError; nothing is left running then.
        """
        if self.alive:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = self._lock or FolderLock.take(self.folder)
        try:
            self._prepare()
            self.end_orphan()
            self._bring_up(time.monotonic() + patience)
        except BaseException:
            self.kill()
            self._unlock()
            raise

    def relaunch(self) -> None:
        """After its death: starts it again, and does not wait until it answers."""
        self._reap()
        self._process = self._launch()

    def stop(self, patience: float = 30.0) -> None:
        """The clean stop: all is on disk, and nobody is left. SIGKILL after `patience` seconds."""
        if self._process is not None and self.alive:
            self._process.send_signal(self.stop_signal)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._reap()
        self._unlock()

    def kill(self) -> None:
        """`kill -9`. The folder stays ours; `start` brings it up again on the same port."""
        if self._process is not None and self.alive:
            self._process.kill()
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def end_orphan(self) -> None:
        """Ends a server whose launcher died. For whoever holds the folder's lock, or a lock above it."""
        pid = processes.read_pid(self.pid_file)
        if pid is None:
            return
        if processes.runs(pid, str(self.data)):
            processes.end(pid, str(self.data), self.stop_signal, 15.0)
        self.pid_file.unlink(missing_ok=True)

    def _bring_up(self, until: float) -> None:
        while not self._start_once(until):
            time.sleep(10 * STEP)

    def _start_once(self, until: float) -> bool:
        if not is_free(self.port):
            raise PortTaken(self.name, self.port)
        self._process = self._launch()
        while not self._answers(self._process.pid):
            if self._process.poll() is not None:
                return self._ended(until)
            if time.monotonic() > until:
                raise LauncherError(f"{self.name} did not answer in time; see {self.log}")
            time.sleep(STEP)
        return True

    def _launch(self) -> subprocess.Popen[bytes]:
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.old"))
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return self._spawn(log)
        except OSError as error:
            raise LauncherError(f"{self.name} cannot be run: {error.strerror}") from None
        finally:
            os.close(log)

    def _ended(self, until: float) -> bool:
        text = self.log.read_text(encoding="utf-8", errors="replace")
        if self._passing(text) and time.monotonic() < until:
            return False
        if ADDRESS_IN_USE in text:
            raise PortTaken(self.name, self.port)
        raise LauncherError(f"{self.name} did not start: {self._reason(text)}")

    def _reason(self, text: str) -> str:
        lines = text.strip().splitlines()
        fatal = [line for line in lines if "FATAL" in line or "Fatal" in line or "Bad file format" in line]
        return (fatal or lines or [f"it said nothing, see {self.log}"])[-1].strip()


def says(port: int, request: bytes, answer: bytes) -> bool:
    """Whether a server on this port gives `answer` to `request`."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(request)
            return connection.recv(len(answer)) == answer
    except OSError:
        return False
