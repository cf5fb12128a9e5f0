import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pillarbox_solo.ports import free_port
from tests.support.simulator import BOT_ID, TOKEN


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


@contextmanager
def process(folder: Path, stop: signal.Signals) -> Iterator[str]:
    port = free_port()
    environment = os.environ | {
        "SIMULATOR_HOST": "127.0.0.1",
        "SIMULATOR_PORT": str(port),
        "SIMULATOR_DATA": str(folder),
        "BOT_TOKENS": TOKEN,
    }
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen([sys.executable, "-m", "pillarbox_simulator"], env=environment) as running:
        try:
            _await(url)
            yield url
        finally:
            running.send_signal(stop)
            code = running.wait(20)
    assert code == (0 if stop == signal.SIGTERM else -stop)


def _await(url: str) -> None:
    for _ in range(200):
        try:
            assert ask(f"{url}/readyz")["ready"]
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the simulator did not start")


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_ids_updates_webhooks_and_chats_survive_a_restart(tmp_path: Path, stop: signal.Signals) -> None:
    message = {"bot_id": BOT_ID, "chat_id": 42, "text": "x", "name": "Ann"}
    with process(tmp_path, stop) as url:
        first = [ask(f"{url}/_ctl/messages", message)["update_id"] for _ in range(3)]
        ask(f"{url}/bot{TOKEN}/getUpdates?offset={first[1]}")
        ask(f"{url}/bot{TOKEN}/sendMessage", {"chat_id": 42, "text": "answer"})
        webhook = {"url": "http://127.0.0.1:9/x", "secret_token": "hush", "allowed_updates": ["message"]}
        ask(f"{url}/bot{TOKEN}/setWebhook", webhook)
    assert (tmp_path / "simulator.jsonl").stat().st_mode & 0o777 == 0o600
    with process(tmp_path, stop) as url:
        info = ask(f"{url}/bot{TOKEN}/getWebhookInfo")["result"]
        assert (info["url"], info["pending_update_count"]) == (webhook["url"], 2)
        assert info["allowed_updates"] == ["message"]
        history = ask(f"{url}/_ctl/history?bot_id={BOT_ID}&chat_id=42")["messages"]
        assert [m["text"] for m in history] == ["x", "x", "x", "answer"]
        ask(f"{url}/bot{TOKEN}/deleteWebhook")
        updates = ask(f"{url}/bot{TOKEN}/getUpdates")["result"]
        assert [update["update_id"] for update in updates] == first[1:]
        answer = ask(f"{url}/_ctl/messages", message)
        assert answer == {"update_id": first[2] + 1, "message_id": 5}


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    with process(tmp_path, signal.SIGKILL) as url:
        ask(f"{url}/_ctl/messages", {"bot_id": BOT_ID, "chat_id": 42, "text": "x"})
    with (tmp_path / "simulator.jsonl").open("ab") as file:
        file.write(b'["update",7000')
    with process(tmp_path, signal.SIGTERM) as url:
        assert ask(f"{url}/_ctl/chats?bot_id={BOT_ID}")["chats"][0]["chat_id"] == 42


@pytest.mark.parametrize(("content", "problem"), [(b"nonsense\n", "is damaged"), (None, "cannot be used")])
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, content: bytes | None, problem: str) -> None:
    file = tmp_path / "simulator.jsonl"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    environment = os.environ | {"SIMULATOR_DATA": str(tmp_path), "SIMULATOR_PORT": str(free_port())}
    done = subprocess.run(
        [sys.executable, "-m", "pillarbox_simulator"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("simulator: SIMULATOR_DATA: ")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
