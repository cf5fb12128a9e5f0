"""`.pillarbox/env`: every setting that the demo uses, for its services, for the command line and for people.

Secrets and ports are made once and kept; a port that is taken today is replaced, unless it was asked for.
"""

import os
import secrets
import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from pillarbox.errors import SettingError
from pillarbox_solo.ports import HOST, free_port, is_free

PORTS = {
    "INGEST_PORT": 8080,
    "DISPATCHER_PORT": 8081,
    "SENDER_PORT": 8082,
    "ADMIN_PORT": 8083,
    "SIMULATOR_PORT": 8084,
    "POSTGRES_PORT": 0,
    "VALKEY_PORT": 0,
}
HANDLERS = "examples.echo_bot.bot"
HEAD = """\
# Made anew at each start of the demo. The next start takes tokens, secrets and the ports of the servers from
# here, and nothing else: ports and HANDLERS are given, as in `make demo SIMULATOR_PORT=9000 HANDLERS=bot`.
"""
OURS = {
    "DATABASE_DIRECT_URL",
    "REDIS_URL",
    "STORAGE",
    "RECEIVE",
    "TELEGRAM_PROXY",
    "ALLOW_UNSAFE_DURABILITY",
    "VALKEY_FOLDER",
}


def _bot_token() -> str:
    return f"{secrets.choice(range(10**9, 10**10))}:{secrets.token_urlsafe(26)}"


SECRETS: dict[str, Callable[[], str]] = {
    "BOT_TOKENS": _bot_token,
    "WEBHOOK_SECRET": lambda: secrets.token_urlsafe(32),
    "ADMIN_TOKENS": lambda: f"demo:read+act+payload:{secrets.token_urlsafe(16)}",
}


def compose(
    kept: Mapping[str, str], given: Mapping[str, str], folder: Path, ports: Collection[str] = PORTS
) -> dict[str, str]:
    """The settings of this start, out of those of the last one. `HANDLERS` and ports may be `given`.

    Raises SettingError for a given port that is none, or is taken.
    """
    settings = {name: kept.get(name) or make() for name, make in SECRETS.items()}
    settings |= _ports(kept, given, ports)
    address = {service: f"http://{HOST}:{settings[f'{service}_PORT']}" for service in ("INGEST", "SIMULATOR")}
    return (
        settings
        | {
            "WEBHOOK_URL": address["INGEST"],
            "TELEGRAM_API_BASE": address["SIMULATOR"],
            "HANDLERS": given.get("HANDLERS") or HANDLERS,
            "SIMULATOR_DATA": str(folder / "simulator"),
            "SEND_TIMEOUT": "8",  # so that Ctrl+C is quick while the simulated Telegram hangs
            "STOP_TIMEOUT": "10",
            "LEASE": "5",
        }
        | {f"{name.removesuffix('_PORT')}_HOST": HOST for name in ports if PORTS[name]}
    )


def replaced(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The settings of ports that could not be the usual ones, with the ports that were taken instead."""
    usual = {name: str(port) for name, port in PORTS.items() if port and name in settings}
    usual = {name: port for name, port in usual.items() if not given.get(name)}
    return {name: settings[name] for name, port in usual.items() if settings[name] != port}


def _ports(kept: Mapping[str, str], given: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    ports = {name: _asked(name, given[name]) for name in names if given.get(name)}
    for name in names:
        if name not in ports:
            wanted = PORTS[name] or int(kept.get(name, 0))
            ports[name] = free_port(wanted, ports.values())
    return {name: str(ports[name]) for name in names}


def _asked(name: str, text: str) -> int:
    fix = f"set another, for example {name}={PORTS[name] or free_port()}"
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise SettingError(f"{name}: no port; {fix}")
    if PORTS[name] and not is_free(int(text)):  # a server of ours that was left behind is ended first
        raise SettingError(f"{name}: port {text} is taken by another program; {fix}")
    return int(text)


def read(file: Path) -> dict[str, str]:
    """What the last start wrote; nothing at the first one."""
    if not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name: "".join(shlex.split(value)) for name, _, value in pairs}


def write(file: Path, settings: Mapping[str, str]) -> None:
    """Whole or not at all, and for its owner's eyes only. A shell can read it too."""
    text = HEAD + "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(settings.items()))
    fresh = file.with_name(f"{file.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    fresh.replace(file)


def for_child(settings: Mapping[str, str], given: Mapping[str, str], root: Path) -> dict[str, str]:
    """What a service is started with: ours before whatever the person's own environment says."""
    names = OURS.union(settings)
    names |= {f"{name}_FILE" for name in names}
    path = os.pathsep.join(part for part in (str(root), given.get("PYTHONPATH", "")) if part)
    kept = {name: value for name, value in given.items() if name not in names}
    return kept | dict(settings) | {"LOG_FORMAT": "json", "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
