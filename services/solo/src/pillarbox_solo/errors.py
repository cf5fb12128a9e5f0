"""What may go wrong while servers and services are started; each is one line for a person.

PillarboxError
└── LauncherError       it cannot be started, with the reason that it gave
    ├── FolderInUse     another launcher, alive, runs on this data folder
    └── PortTaken       something else listens on this port
"""

from pathlib import Path

from pillarbox.errors import PillarboxError


class LauncherError(PillarboxError):
    """A server or a service could not be started or stopped."""


class FolderInUse(LauncherError):
    def __init__(self, folder: Path, holder: str, elsewhere: str) -> None:
        super().__init__(f"{folder} is in use by process {holder}; stop that one first, or {elsewhere}")


class PortTaken(LauncherError):
    def __init__(self, name: str, port: int) -> None:
        super().__init__(
            f"{name}: port {port} is taken by another program; stop that one or set another port"
        )
        self.port = port
