"""Exit codes: 0 after a clean stop, 2 for a wrong setting with one line, 1 for anything else."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

PROGRAM = """
import asyncio
from pillarbox import process
from pillarbox.errors import SettingError
from pillarbox.settings import Settings

async def main(settings, stop):
    {body}

process.run("thing", Settings, main)
"""


def run(body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(body=textwrap.indent(body, "    ").strip())
    env = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_clean_end_is_0() -> None:
    assert run("return").returncode == 0


def test_a_wrong_setting_is_2_and_one_line() -> None:
    done = run("return", LOG_LEVEL="loud")
    assert done.returncode == 2
    assert done.stderr.startswith("thing: LOG_LEVEL: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_setting_found_wrong_later_is_2_as_well() -> None:
    body = "async with asyncio.TaskGroup() as group:\n    group.create_task(wrong())"
    program = f"async def wrong():\n    raise SettingError('PORT: it is taken')\n{body}"
    done = run(program)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["thing: PORT: it is taken"]


def test_an_error_of_ours_is_1_and_one_line() -> None:
    done = run("from pillarbox.errors import PollingConflictError\nraise PollingConflictError('two of them')")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["thing: two of them"]


def test_anything_else_is_1() -> None:
    assert run("raise OSError").returncode == 1


async def test_sigterm_sets_stop() -> None:
    program = PROGRAM.format(body="print('up', flush=True); await stop.wait(); print('down')")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"]}
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"up\n"
    child.send_signal(signal.SIGTERM)
    rest = await child.stdout.read()
    assert (rest, await child.wait()) == (b"down\n", 0)


SWALLOWS = """
async def swallows():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
left = asyncio.create_task(swallows())
await asyncio.sleep(0)
"""
SLEEPS = """
import time
left = asyncio.create_task(asyncio.to_thread(time.sleep, 60))
await asyncio.sleep(0.1)
"""


@pytest.mark.parametrize("left", [SWALLOWS, SLEEPS], ids=["a task", "a thread"])
@pytest.mark.parametrize(
    ("end", "code"), [("", 0), ("raise SettingError('PORT: taken')", 2), ("raise OSError", 1)]
)
def test_what_is_left_behind_does_not_hold_the_process(left: str, end: str, code: int) -> None:
    began = time.monotonic()
    done = run(f"{left}\n{end}")
    assert (done.returncode, time.monotonic() - began < 20) == (code, True)
    assert "ending the process with work in it" in done.stderr
    assert "swallows at <string>:" in done.stderr or "uvloop_0 at " in done.stderr
