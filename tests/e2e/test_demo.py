"""`make demo` from start to Ctrl+C, with the person who writes to the bot; on each store that it may have."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pillarbox_solo import processes
from pillarbox_solo.ports import free_port
from tests.support.demo import RunningDemo, call, until

PROCESSES = {"sqlite": 3, "postgres": 7}
"""Servers included."""
STARTED_AGAIN = {"sqlite": 2, "postgres": 7}
"""Its Valkey is started by `pillarbox run` itself."""


@pytest.fixture(params=["sqlite", "postgres"])
def demo(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RunningDemo]:
    running = RunningDemo(tmp_path / "demo", tmp_path / "demo.log", request.param)
    yield running
    running.end()


def failed(demo: RunningDemo) -> list[dict[str, object]]:
    settings = demo.settings
    token = settings["ADMIN_TOKENS"].rpartition(":")[2]
    url = f"http://127.0.0.1:{settings['ADMIN_PORT']}/api/v1/bots/{demo.bot_id}/failed-updates"
    found: list[dict[str, object]] = call(url, headers={"Authorization": f"Bearer {token}"})["items"]
    return found


def test_the_echo_comes_and_the_data_stays(demo: RunningDemo) -> None:
    demo.start()
    demo.write("hello")
    until(lambda: demo.texts() == ["hello"], "the echo", demo)
    demo.write("/fail")
    until(lambda: len(failed(demo)) == 1, "the failed update", demo)
    pids = demo.pids()
    assert len(pids) == PROCESSES[demo.store]
    assert demo.signal(signal.SIGINT) == 0
    assert "Stopped. The next start finds the data" in demo.output
    assert not {pid for pid in pids if processes.command(pid)}
    settings = demo.settings

    demo.start()
    assert demo.settings["BOT_TOKENS"] == settings["BOT_TOKENS"]
    assert len(failed(demo)) == 1
    demo.write("again")
    until(lambda: "again" in demo.texts(), "the echo after the restart", demo)


def test_what_a_killed_demo_left_is_ended_by_the_next(demo: RunningDemo) -> None:
    demo.start()
    orphans = demo.pids()
    demo.signal(signal.SIGKILL)
    assert {pid for pid in orphans if processes.command(pid)} == orphans
    demo.start()
    assert not {pid for pid in orphans if processes.command(pid)}
    demo.write("hello")
    until(lambda: demo.texts() == ["hello"], "the echo", demo)


def test_killed_parts_are_started_again(demo: RunningDemo) -> None:
    demo.start()
    before = demo.pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(demo.pids() - before) == len(before), "all parts to be started again", demo)
    until(lambda: demo.output.count("is started again") >= STARTED_AGAIN[demo.store], "that to be said", demo)
    until(demo.ready, "all parts to be ready", demo)
    demo.write("hello")
    until(lambda: demo.texts() == ["hello"], "the echo", demo)


def test_a_second_demo_on_the_same_folder_is_refused(demo: RunningDemo, tmp_path: Path) -> None:
    demo.start()
    second = RunningDemo(demo.folder, tmp_path / "second.log", demo.store)
    with pytest.raises(AssertionError, match="is in use by process"):
        second.start()
    assert "Traceback" not in second.output
    demo.write("hello")
    until(lambda: demo.texts() == ["hello"], "the echo", demo)


def test_a_bot_that_cannot_be_imported_stops_it_with_one_line(demo: RunningDemo) -> None:
    with pytest.raises(AssertionError):
        demo.start(HANDLERS="no_such_bot")
    assert demo.wait() == 2
    assert demo.output.splitlines()[-1].startswith("demo: HANDLERS: no_such_bot cannot be imported")
    assert "simulator" not in demo.output
    assert "Traceback" not in demo.output
    assert demo.pids() == set()


def test_a_port_that_was_asked_for_is_used_and_one_that_is_taken_is_said(
    demo: RunningDemo, tmp_path: Path
) -> None:
    port = str(free_port())
    demo.start(SIMULATOR_PORT=port)
    assert demo.settings["SIMULATOR_PORT"] == port
    second = RunningDemo(tmp_path / "second", tmp_path / "second.log", demo.store)
    with pytest.raises(AssertionError):
        second.start(SIMULATOR_PORT=port)
    assert second.wait() == 2
    assert f"demo: SIMULATOR_PORT: port {port} is taken" in second.output
