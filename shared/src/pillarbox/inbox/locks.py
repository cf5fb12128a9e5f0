"""One process a bot: an OS lock on a file beside the database, which no crash can leave behind."""

import fcntl
import os
from pathlib import Path
from typing import Self

from pillarbox.errors import PollingConflictError
from pillarbox.ids import BotId


class BotLock:
    """Held until `release` or until the process ends, however it ends. The file stays where it is.

    The lock belongs to the open file: a second one of the same process conflicts too, and programs that this
    process starts do not inherit it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, database: Path, bot_id: BotId) -> Self:
        """Raises PollingConflictError, which names the file and the process that has it."""
        path = path_of(database, bot_id)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise PollingConflictError(
                f"bot {bot_id} is received and handled by process {holder}, which holds {path}; "
                "stop one of the two"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def path_of(database: Path, bot_id: BotId) -> Path:
    return database.with_name(f"{database.name}.{bot_id}.lock")
