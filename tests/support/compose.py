"""The stack that deploy/test-compose has brought up, driven from outside, by its published ports."""

import json
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

KILL = """
import os, pathlib, signal
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    words = (folder / "cmdline").read_bytes().split(b"\\0")
    if int(folder.name) > 1 and words[1:3] == [b"-m", {module!r}.encode()]:
        os.kill(int(folder.name), signal.SIGKILL)
"""


@dataclass(frozen=True)
class Stack:
    command: list[str]
    env_file: Path

    def compose(self, *words: str) -> str:
        done = subprocess.run(
            [*self.command, *words], check=False, capture_output=True, text=True, timeout=150
        )
        assert done.returncode == 0, f"compose {words[0]}: {done.stderr[-2000:]}"
        return done.stdout

    def setting(self, name: str) -> str:
        lines = self.env_file.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)[name]

    @property
    def bot_id(self) -> int:
        return int(self.setting("BOT_TOKENS").partition(":")[0])

    def address(self, service: str, port: int) -> str:
        return f"http://{self.compose('port', service, str(port)).strip()}"

    def states(self) -> dict[str, dict[str, Any]]:
        """Each container of the stack by its service, as Docker sees it."""
        rows = [json.loads(line) for line in self.compose("ps", "--all", "--format", "json").splitlines()]
        return {row["Service"]: row for row in rows}

    def restarts(self, service: str) -> int:
        container = self.compose("ps", "--quiet", service).strip()
        answer = subprocess.run(
            ["docker", "inspect", "--format", "{{.RestartCount}}", container],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        return int(answer.stdout)

    def kill(self, service: str) -> None:
        """`kill -9` of the service's process from inside: `docker kill` would count as a stop on purpose."""
        code = KILL.format(module=f"pillarbox_{service}")
        killing = [*self.command, "exec", "-T", service, "python", "-c", code]
        # Its own exit code says nothing: the container may end before it does.
        subprocess.run(killing, check=False, capture_output=True, timeout=60)

    def ask(self, url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(url, data, {"content-type": "application/json", **(headers or {})})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)


def stack_of(command: str, env_file: str) -> Stack:
    return Stack(shlex.split(command), Path(env_file))


def until(look: Callable[[], T], seconds: float, what: str) -> T:
    """Looks again and again until it sees something true; says `what` was awaited when it never does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds:.0f} s: {what}")
