"""Processes that are not our children: who they are, and whether they have ended."""

import os
import signal
import subprocess
import time
from pathlib import Path

PROC = Path("/proc")


def command(pid: int) -> list[str]:
    """The arguments of a living process; none when it is gone, or only waits to be reaped."""
    try:
        return [os.fsdecode(part) for part in (PROC / str(pid) / "cmdline").read_bytes().split(b"\0") if part]
    except OSError:
        return [] if PROC.exists() else _command_of_ps(pid)


def _command_of_ps(pid: int) -> list[str]:
    answer = subprocess.run(  # noqa: S603
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.split()


def runs(pid: int, mark: str) -> bool:
    """Whether `pid` lives with `mark` as an argument: a number alone may be somebody else's by now."""
    return mark in command(pid)


def read_pid(file: Path) -> int | None:
    """The first line of a pid file; None when there is no file, or no number in it."""
    try:
        return int(file.read_text(encoding="utf-8").split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def end(pid: int, mark: str, number: signal.Signals, patience: float) -> None:
    """Ends the process that `runs` says it is: the polite way for `patience` seconds, then SIGKILL."""
    for signal_number, wait in ((number, patience), (signal.SIGKILL, 5.0)):
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            return
        until = time.monotonic() + wait
        while time.monotonic() < until:
            if not runs(pid, mark):
                return
            time.sleep(0.02)
