"""A port that is taken ends a start at once: one line, exit code 2, whatever else lives or is away."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import ADMIN_TOKEN, SECRET, TOKEN

NOWHERE = {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1/0"}
PATIENCE = 30.0


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def ended(module: str, setting: str, port: int, **settings: str) -> list[str]:
    """What it wrote until it ended, with 2."""
    hosts = {f"{name}_HOST": "127.0.0.1" for name in ("INGEST", "DISPATCHER", "SENDER", "ADMIN", "SIMULATOR")}
    given = {
        "BOT_TOKENS": TOKEN,
        "WEBHOOK_SECRET": SECRET,
        "TELEGRAM_API_BASE": "http://127.0.0.1:1",
        "HANDLERS": "tests.support.run_bot",
        "ADMIN_TOKENS": f"tests:read:{ADMIN_TOKEN}",
        "INGEST_PORT": "0",
        "ADMIN_PORT": "0",
        setting: str(port),
    }
    command = [sys.executable, "-m", f"pillarbox_{module}", *(["run"] if module == "solo" else [])]
    done = subprocess.run(
        command,
        env=os.environ | hosts | given | settings,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    lines = done.stderr.splitlines()
    assert done.returncode == 2, lines
    assert "Traceback" not in done.stderr
    assert f": {setting}: cannot listen on 127.0.0.1:{port}" in lines[-1]
    return lines


@pytest.mark.parametrize(
    ("module", "alive"),
    [("ingest", True), ("dispatcher", True), ("sender", True), ("admin", True), ("dispatcher", False)],
)
def test_of_a_service(module: str, alive: bool, taken: int, postgres_url: str, valkey_url: str) -> None:
    servers = {"DATABASE_URL": postgres_url, "REDIS_URL": valkey_url} if alive else NOWHERE
    ended(module, f"{module.upper()}_PORT", taken, **servers)


@pytest.mark.parametrize("setting", ["INGEST_PORT", "ADMIN_PORT"])
def test_of_pillarbox_run(setting: str, taken: int, tmp_path: Path) -> None:
    lines = ended("solo", setting, taken, DATABASE_URL=str(tmp_path / "bot.db"))
    assert len(lines) == 1
    assert not (tmp_path / "bot.db.valkey").exists()
