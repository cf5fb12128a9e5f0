"""PostgreSQL on a data folder of ours."""

import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import ClassVar

from pillarbox_solo import account
from pillarbox_solo.account import Account, Place
from pillarbox_solo.binaries import postgres_bin
from pillarbox_solo.errors import LauncherError
from pillarbox_solo.server import Server

LOCALES = ("C.UTF-8", "C")
READY_LINE = 7  # of postmaster.pid; what pg_ctl waits for

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # The hot tables are small and change all the time; and a DROP DATABASE can wait for the launcher to wake.
    "autovacuum_naptime": "5s",
    # An error's statement and its DETAIL line may quote what people wrote.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
NO_SYNC = {"fsync": "off", "full_page_writes": "off"}


class PostgresServer(Server):
    """`fsync=False` is for tests that are thrown away: a power cut would cost the data."""

    name: ClassVar[str] = "PostgreSQL"
    stop_signal: ClassVar[signal.Signals] = (
        signal.SIGINT
    )  # the fast shutdown: clients are let go, all is written

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *,
        fsync: bool = True,
        programs: Path | None = None,
        as_user: Account | None = None,
    ) -> None:
        super().__init__(folder, port)
        self._fsync = fsync
        self._programs = programs
        self._as_user = as_user
        self._place: Place | None = None

    @property
    def url(self) -> str:
        return self.database("postgres")

    def database(self, name: str) -> str:
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/{name}"

    @property
    def password(self) -> str:
        """Made once. Without it every user of this machine could run programs as ours, through COPY."""
        file = self.folder / "password"
        if not file.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as stream:
                stream.write(secrets.token_urlsafe(24))
        return file.read_text(encoding="utf-8")

    @property
    def place(self) -> Place:
        if self._place is None:
            programs = postgres_bin(self._programs)
            if self._as_user is None:
                self._place = account.choose(programs, self.folder)
            else:
                self._place = account.demoted(self._as_user, programs, self.folder)
        return self._place

    @property
    def data(self) -> Path:
        return self.place.folder / "data"

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _prepare(self) -> None:
        if (self.data / "PG_VERSION").exists():
            return
        fresh = self.data.with_name("data.new")
        shutil.rmtree(fresh, ignore_errors=True)  # of an initdb that was cut short
        password_file = self._password_file()
        try:
            answer = self._initdb(fresh, password_file)
        finally:
            password_file.unlink()
        if answer.returncode:
            last = (answer.stderr.strip() or "no reason given").splitlines()[-1]
            raise LauncherError(f"{self.name}: initdb failed: {last}")
        fresh.rename(self.data)

    def _password_file(self) -> Path:
        """For initdb alone, where its account can read it."""
        file = self.place.folder / "password.new"
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(self.password)
        if self.place.account.uid is not None:
            os.chown(file, self.place.account.uid, -1)
        return file

    def _initdb(self, fresh: Path, password_file: Path) -> subprocess.CompletedProcess[str]:
        answer = self._initdb_once(fresh, password_file, LOCALES[0])
        for locale in LOCALES[1:]:
            if "invalid locale" not in answer.stderr:
                break
            answer = self._initdb_once(fresh, password_file, locale)
        return answer

    def _initdb_once(self, fresh: Path, password_file: Path, locale: str) -> subprocess.CompletedProcess[str]:
        arguments = ["-D", str(fresh), "-U", "postgres", "-E", "UTF8", f"--locale={locale}"]
        arguments += ["-A", "scram-sha-256", f"--pwfile={password_file}"]
        if not self._fsync:
            arguments.append("--no-sync")
        return subprocess.run(  # noqa: S603
            self.place.account.command(self.place.programs / "initdb", *arguments),
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            **self.place.account.popen(_environment()),
        )

    def _spawn(self, log: int) -> subprocess.Popen[bytes]:
        settings = SETTINGS | ({} if self._fsync else NO_SYNC)
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return subprocess.Popen(  # noqa: S603
            self.place.account.command(
                self.place.programs / "postgres", "-D", self.data, "-p", str(self.port), *flags
            ),
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl+C in the terminal is for the launcher, which stops things in order
            cwd="/",
            **self.place.account.popen(_environment()),
        )

    def _answers(self, pid: int) -> bool:
        try:
            lines = self.pid_file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > READY_LINE and lines[0] == str(pid) and lines[READY_LINE].strip() == "ready"

    def _passing(self, log: str) -> bool:
        """Backends of a postmaster that was killed need a moment to notice."""
        return "pre-existing shared memory block" in log


def _environment() -> dict[str, str]:
    """Without PGDATA, PGPORT and the like, which would override us."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
