"""The demo stack in Docker: healthy, answering in a browser, losing nothing while its containers die.

`make test-compose` brings the stack up and runs this.
"""

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.support.compose import Stack, stack_of, until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(240)]

LONG_RUNNING = {"postgres", "redis", "ingest", "dispatcher", "sender", "admin", "simulator"}
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def stack() -> Stack:
    if "PILLARBOX_COMPOSE" not in os.environ:
        pytest.skip("make test-compose brings the stack up and runs this")
    return stack_of(os.environ["PILLARBOX_COMPOSE"], os.environ["PILLARBOX_COMPOSE_ENV"])


@pytest.fixture(scope="module")
def telegram(stack: Stack) -> str:
    address = stack.address("simulator", 8084)
    stack.ask(f"{address}/_ctl/reset", {})
    return address


def healthy(stack: Stack) -> set[str]:
    return {name for name, state in stack.states().items() if state["Health"] == "healthy"}


def test_every_service_is_healthy(stack: Stack) -> None:
    states = stack.states()
    assert healthy(stack) == LONG_RUNNING
    assert (states["migrate"]["State"], states["migrate"]["ExitCode"]) == ("exited", 0)


@pytest.mark.parametrize("service", ["ingest", "dispatcher", "sender", "admin", "simulator"])
def test_a_service_is_nobody_and_can_write_nowhere(stack: Stack, service: str) -> None:
    look = "import os; print(os.getuid(), os.access('/', os.W_OK), os.access('/bot', os.W_OK))"
    assert stack.compose("exec", "-T", service, "python", "-c", look).split() == ["10001", "False", "False"]


@pytest.mark.browser
def test_a_person_writes_in_the_chat_page_and_sees_the_reply(stack: Stack, telegram: str) -> None:
    text = f"hello from Docker, {time.monotonic_ns()}"
    shot = Path(os.environ["PILLARBOX_SHOTS"]) / "chat.png"
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        with playwright.chromium.launch(executable_path=chromium, args=CHROMIUM) as browser:
            page = browser.new_page(viewport={"width": 1100, "height": 760})
            page.goto(telegram)
            page.get_by_label("Message", exact=True).fill(text)
            page.get_by_role("button", name="Send", exact=True).click()
            expect(page.locator('[data-from="user"]').last).to_contain_text(text)
            expect(page.locator('[data-from="bot"]').last).to_contain_text(
                "hello from Docker", timeout=15_000
            )
            page.screenshot(path=shot)
    print(f"screenshot: {shot}")


def test_what_an_app_pushes_to_the_door_arrives_once(stack: Stack, telegram: str) -> None:
    element = '{"method":"sendMessage","params":{"chat_id":7042,"text":"#7042:1"}}'
    stack.compose("exec", "-T", "redis", "redis-cli", "RPUSH", "pillarbox:outbound", element)
    calls = until(
        lambda: stack.ask(f"{telegram}/_ctl/ledger?chat_id=7042&method=sendMessage")["calls"],
        10,
        "the pushed message in the ledger",
    )
    assert [(call["params"]["text"], call["status"]) for call in calls] == [("#7042:1", 200)]


class Crowd:
    """Twenty people, each in a chat of their own, who count; the echo's replies are checked by number."""

    def __init__(self, stack: Stack, telegram: str, first_chat: int) -> None:
        self._stack, self._telegram = stack, telegram
        self._chats = range(first_chat, first_chat + 20)
        self._said = 0

    def say(self) -> None:
        self._said += 1
        messages = [
            {"bot_id": self._stack.bot_id, "chat_id": chat, "user_id": chat, "text": f"#{chat}:{self._said}"}
            for chat in self._chats
        ]
        self._stack.ask(f"{self._telegram}/_ctl/messages", messages)

    def keep_saying_while(self, act: Callable[[], object]) -> None:
        with ThreadPoolExecutor(1) as pool:
            acting = pool.submit(act)
            while not acting.done():
                self.say()
                time.sleep(0.1)
            acting.result()
        self.say()

    def check(self) -> dict[str, Any]:
        expected = {str(chat): self._said for chat in self._chats}
        answer: dict[str, Any] = self._stack.ask(f"{self._telegram}/_ctl/check", {"expected": expected})
        return answer

    def everything_answered(self) -> dict[str, Any]:
        until(lambda: not self.check()["lost"], 90, "every reply in the ledger")
        return self.check()

    def ours(self, marker: str) -> bool:
        return int(marker.removeprefix("#").partition(":")[0]) in self._chats


@pytest.mark.parametrize("service", ["dispatcher", "sender"])
def test_a_killed_service_comes_back_and_nothing_is_lost(stack: Stack, telegram: str, service: str) -> None:
    crowd = Crowd(stack, telegram, 8000 if service == "dispatcher" else 8100)
    before = stack.restarts(service)
    crowd.keep_saying_while(lambda: stack.kill(service))
    until(lambda: stack.restarts(service) > before, 30, f"Docker starts {service} again")
    end = crowd.everything_answered()
    assert not end["reordered"]
    assert all(copies == 2 for copies in end["doubled"].values())
    until(lambda: healthy(stack) == LONG_RUNNING, 30, "every service healthy again")


def test_a_restart_in_the_middle_loses_and_doubles_nothing(stack: Stack, telegram: str) -> None:
    crowd = Crowd(stack, telegram, 8200)
    crowd.keep_saying_while(lambda: stack.compose("restart", "dispatcher", "sender"))
    end = crowd.everything_answered()
    assert not [marker for marker in end["doubled"] if crowd.ours(marker)]
    assert not end["reordered"]


def test_what_a_handler_raised_is_on_the_failed_list(stack: Stack, telegram: str) -> None:
    token = stack.setting("ADMIN_TOKENS").rpartition(":")[2]
    address = f"{stack.address('admin', 8083)}/api/v1/bots/{stack.bot_id}/failed-updates"
    said = stack.ask(
        f"{telegram}/_ctl/messages",
        {"bot_id": stack.bot_id, "chat_id": 8300, "user_id": 8300, "text": "/fail"},
    )

    def listed() -> bool:
        page = stack.ask(address, headers={"authorization": f"Bearer {token}"})
        return any(said["update_id"] == row["update_id"] for row in next(iter(page.values())))

    until(listed, 15, "the update that /fail failed on admin's list")
