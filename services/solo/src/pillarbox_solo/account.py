"""As whom PostgreSQL runs: it refuses to be root.

Root gives it a user namespace of its own, where the same user has another number: its files stay root's.
Where the kernel or a container forbids that, an existing unprivileged user takes over, in a place that it can
reach. No permission of a folder that is not ours is changed.
"""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pillarbox_solo.errors import LauncherError

UNPRIVILEGED = ("nobody", "postgres", "daemon")
IDS_IN_NAMESPACE = ("--map-user=1000", "--map-group=1000")


@dataclass(frozen=True)
class Account:
    """How a program is started: a prefix of its command, or the ids that it changes to."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    @classmethod
    def namespace(cls) -> Self:
        """The same user under another number. The process keeps its pid: `unshare` becomes the program."""
        return cls(prefix=(shutil.which("unshare") or "unshare", "-U", *IDS_IN_NAMESPACE, "--"))

    @classmethod
    def user(cls, name: str) -> Self:
        entry = pwd.getpwnam(name)
        return cls(uid=entry.pw_uid, gid=entry.pw_gid)

    @property
    def changes_user(self) -> bool:
        return self.uid is not None

    def command(self, *arguments: str | Path) -> list[str]:
        return [*self.prefix, *(str(argument) for argument in arguments)]

    def popen(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` that make it so."""
        given: dict[str, Any] = {"env": dict(environment), "stdin": subprocess.DEVNULL}
        if self.changes_user:
            given |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return given

    def can(self, *tests: tuple[str, Path]) -> bool:
        """Whether `test -x path` and the like hold for this account."""
        return all(self._run("/usr/bin/env", "test", flag, str(path)) for flag, path in tests)

    def _run(self, *arguments: str) -> bool:
        given = self.popen({"PATH": os.defpath}) | {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        try:
            return subprocess.run(self.command(*arguments), check=False, cwd="/", **given).returncode == 0  # noqa: S603
        except OSError:
            return False


@dataclass(frozen=True)
class Place:
    """An account, with programs and a folder that it can reach; `shelter` is what lies outside ours."""

    account: Account
    programs: Path
    folder: Path
    shelter: Path | None = None


def choose(programs: Path, folder: Path) -> Place:
    """An ordinary user: as it is. Root: the namespace, else the first unprivileged user that there is."""
    if os.geteuid() != 0:
        return Place(Account(), programs, folder)
    namespace = Account.namespace()
    if namespace.can(("-x", programs / "postgres"), ("-w", folder)):
        return Place(namespace, programs, folder)
    for name in UNPRIVILEGED:
        try:
            return demoted(Account.user(name), programs, folder)
        except KeyError:
            continue
    raise LauncherError(
        "PostgreSQL does not run as root, and neither a user namespace nor an unprivileged user can be had; "
        "start this as an ordinary user"
    )


def demoted(account: Account, programs: Path, folder: Path) -> Place:
    """Programs and data for another user: where they are if that user can reach them, else under /var/tmp."""
    shelter = _shelter(folder)
    if not account.can(("-x", programs / "postgres")):
        programs = _copy(programs, shelter)
    home = shelter / "postgres"
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, account.uid or 0, account.gid or 0)
    return Place(account, programs, home, shelter)


def _shelter(folder: Path) -> Path:
    """A folder of root's that anyone may pass through, the same one for the same data folder each time."""
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    root = Path("/var/tmp") if Path("/var/tmp").is_dir() else Path(tempfile.gettempdir())  # noqa: S108
    shelter = root / f"pillarbox-{digest}"
    shelter.mkdir(mode=0o755, exist_ok=True)
    found = shelter.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LauncherError(f"{shelter} belongs to somebody else; remove it")
    shelter.chmod(0o755)
    return shelter


def _copy(programs: Path, shelter: Path) -> Path:
    """The whole installation: PostgreSQL finds its libraries and `share/` beside its own place."""
    install = programs.parent
    target = shelter / "programs"
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(install, target / install.name, symlinks=True)
        libraries = install.parent.parent / f"{install.parent.name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, target.parent / libraries.name, dirs_exist_ok=True)
        (target / "complete").touch()
    return target / install.name / programs.name
