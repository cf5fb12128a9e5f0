"""One launcher a data folder: an OS lock, which no crash can leave behind."""

import fcntl
import os
from pathlib import Path
from typing import Self

from pillarbox_solo.errors import FolderInUse


class FolderLock:
    """Held until `release` or until the process ends. Child processes do not inherit it.

    A server that still runs on a folder whose lock is free is an orphan: its launcher was killed.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, folder: Path, elsewhere: str = "take another folder") -> Self:
        """Raises FolderInUse, which names the process that has it, and how to go `elsewhere`."""
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "?"
            os.close(descriptor)
            raise FolderInUse(folder, holder, elsewhere) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return cls(descriptor)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
