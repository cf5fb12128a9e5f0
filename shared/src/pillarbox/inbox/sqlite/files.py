"""The files of a database: for their owner only, on a local disk."""

import os
import stat
from pathlib import Path

from pillarbox.errors import SettingError
from pillarbox.telemetry import get_logger

NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "ncpfs",
        "ocfs2",
        "gfs2",
        "beegfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "virtiofs",
    ]
)
PRIVATE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO

log = get_logger()


def path_of(url: str) -> Path:
    """`sqlite:///bot.db` and `bot.db` are in the working folder, `sqlite:////var/lib/bot.db` is not."""
    path = url.removeprefix("sqlite:///")
    if not path or "://" in path or "\0" in path or path == ":memory:":
        raise SettingError(
            "DATABASE_URL: it names no file; set it, for example DATABASE_URL=sqlite:////var/lib/bot/bot.db"
        )
    return Path(path)


def prepare(path: Path) -> None:
    """Makes the database's file, for its owner only, before SQLite sees it; -wal and -shm get its rights.

    Raises SettingError where there can be no such file.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
    except OSError as error:
        raise SettingError(
            f"DATABASE_URL: {path} cannot be opened ({error.strerror}); "
            "name a file in a folder that exists and that this process may write to"
        ) from None
    warn(path)


def warn(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        file = path.with_name(name)
        if file.exists() and file.stat().st_mode & OTHERS:
            log.warning("others can read the updates in this file; chmod 600 it", file=str(file))
    kind = file_system(path)
    if kind in NETWORK:
        log.warning(
            "SQLite's locks do not work reliably on a network share; move the database to a local disk",
            file=str(path),
            file_system=kind,
        )


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the file system that `path` is on; None where the system does not tell."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return None
    target, best, kind = path.resolve(), -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4].encode().decode("unicode_escape"))
        if len(point.parts) >= best and target.is_relative_to(point):
            best, kind = len(point.parts), after.split(" ")[0]
    return kind
