"""The demo as a person starts it: a process, its lines, and what is left when it has ended."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pillarbox_solo import environment, processes
from pillarbox_solo.stores import STORES

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class RunningDemo:
    """`start` returns when the demo says that it is up; `output` is all that it wrote."""

    def __init__(self, folder: Path, log: Path, store: str = "sqlite") -> None:
        self.folder = folder
        self.store = store
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **given: str) -> float:
        """Answers how many seconds it took. `given` is added to its environment."""
        began = time.monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pillarbox_solo", "demo", *self._options],
                cwd=ROOT,
                env=os.environ | given,
                stdout=log,
                stderr=log,
            )
        until(lambda: "Pillarbox is up" in self.output or self._process_ended(), "the demo to be up", self)
        assert "Pillarbox is up" in self.output, self.output
        return time.monotonic() - began

    @property
    def _options(self) -> list[str]:
        return ["--folder", str(self.folder), "--store", self.store]

    def _process_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def settings(self) -> dict[str, str]:
        return environment.read(self.folder / "env")

    @property
    def bot_id(self) -> int:
        return int(self.settings["BOT_TOKENS"].partition(":")[0])

    def pids(self) -> set[int]:
        """Of everything that it started."""
        files = [*(self.folder / "run").glob("*.pid"), self.folder / "postgres" / "data" / "postmaster.pid"]
        found = {processes.read_pid(file) for file in [*files, *self.folder.glob("*valkey/valkey.pid")]}
        return {pid for pid in found if pid is not None}

    def ready(self) -> bool:
        """Whether every service says so now."""
        ports = [self.settings[setting] for setting in STORES[self.store].parts.values()]
        try:
            return all(call(f"http://127.0.0.1:{port}/readyz")["ready"] for port in ports)
        except OSError:
            return False

    def signal(self, number: signal.Signals) -> int:
        """Answers its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def end(self) -> None:
        """Whatever happened in the test, nothing stays."""
        pids = self.pids()
        if not self._process_ended():
            self.signal(signal.SIGTERM)
        for pid in pids:
            if processes.command(pid):
                os.kill(pid, signal.SIGKILL)

    def simulator(self, path: str, body: object = None) -> Any:
        return call(f"{self.settings['TELEGRAM_API_BASE']}{path}", body)

    def write(self, text: str, chat_id: int = 42) -> None:
        """A person writes to the bot."""
        message = {"bot_id": self.bot_id, "chat_id": chat_id, "user_id": chat_id, "text": text}
        self.simulator("/_ctl/messages", message)

    def texts(self, chat_id: int = 42) -> list[str]:
        """What the bot has sent to a chat."""
        query = f"bot_id={self.bot_id}&chat_id={chat_id}&method=sendMessage"
        return [call["params"]["text"] for call in self.simulator(f"/_ctl/ledger?{query}")["calls"]]


def call(url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} | (headers or {}))
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def until(condition: Callable[[], bool], what: str, demo: RunningDemo, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"waited {patience:.0f} s for {what}\n{demo.output}"
        time.sleep(0.05)
