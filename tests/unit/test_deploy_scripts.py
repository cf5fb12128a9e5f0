"""The scripts around compose.yaml, as far as they go without an engine."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from pillarbox.settings import TOKEN

DEPLOY = Path(__file__).parents[2] / "deploy"
NO_ENGINE = {"DOCKER_HOST": "unix:///nowhere.sock"}


def run(script: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "OFFLINE_IMAGES"}
    return subprocess.run(
        [DEPLOY / script, *words],
        env=environment | NO_ENGINE | settings,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("offline", ["", "/nowhere"])
def test_without_an_engine_the_docker_leg_says_that_it_did_not_run(offline: str) -> None:
    done = run("test-compose", OFFLINE_IMAGES=offline)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "docker leg: NOT RUN"


def test_without_an_engine_make_up_says_what_needs_none() -> None:
    done = run("up")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "make demo" in done.stderr


def test_the_demo_has_secrets_of_its_own_and_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "data" / "env"
    assert run("demo-env", str(file)).returncode == 0
    first = file.read_text(encoding="utf-8")
    assert run("demo-env", str(file)).returncode == 0
    assert file.read_text(encoding="utf-8") == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    settings = dict(line.split("=", 1) for line in first.splitlines())
    assert TOKEN.match(settings["BOT_TOKENS"])
    secrets = {
        settings[name].rpartition(":")[2] for name in ("BOT_TOKENS", "POSTGRES_PASSWORD", "ADMIN_TOKENS")
    }
    assert len(secrets | {settings["WEBHOOK_SECRET"]}) == 4
