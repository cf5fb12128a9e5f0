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


def serves(pid: int, folder: Path) -> bool:
    """Whether `pid` lives and was started on `folder`: a number alone may belong to somebody else by now."""
    return str(folder) in command(pid)


def read_pid(file: Path) -> int | None:
    """The first line of a pid file; None when there is no file, or no number in it."""
    try:
        return int(file.read_text(encoding="utf-8").split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def end(pid: int, folder: Path, number: signal.Signals, patience: float) -> None:
    """Ends the process that serves `folder`: the polite way for `patience` seconds, then SIGKILL."""
    for signal_number, wait in ((number, patience), (signal.SIGKILL, 5.0)):
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            return
        until = time.monotonic() + wait
        while time.monotonic() < until:
            if not serves(pid, folder):
                return
            time.sleep(0.02)
