"""The end of a process whose work is done: what others left in it is named, and does not hold it for long."""

import asyncio
import contextvars
import logging
import os
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn

from pillarbox.telemetry import get_logger

SECONDS = 3.0
"""For tasks that are cancelled now, and for threads such as those of `asyncio.to_thread`."""
MOST = 10

log = get_logger()


def leave_in_time(loop: asyncio.AbstractEventLoop, code: int, seconds: float = SECONDS) -> None:
    """From now on the process ends by itself within `seconds`, or with `code` after them."""
    threading.Thread(
        target=contextvars.copy_context().run,
        args=(_end, loop, code, seconds),
        name="leaving",
        daemon=True,
    ).start()


def _end(loop: asyncio.AbstractEventLoop, code: int, seconds: float) -> NoReturn:
    time.sleep(seconds)
    tasks, threads = _tasks(loop), _threads()
    if tasks or threads:
        what = "ending the process with work in it that does not end"
        log.error(what, tasks=tasks[:MOST], threads=threads[:MOST], all=len(tasks) + len(threads))
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def _tasks(loop: asyncio.AbstractEventLoop) -> list[str]:
    return [_task(task) for task in asyncio.all_tasks(loop)]


def _task(task: "asyncio.Task[Any]") -> str:
    coroutine: Any = task.get_coro()
    name = getattr(coroutine, "__qualname__", task.get_name())
    return f"{name} at {_place(getattr(coroutine, 'cr_frame', None))}"


def _threads() -> list[str]:
    frames = sys._current_frames()
    return [
        f"{thread.name} at {_place(frames.get(thread.ident or 0))}"
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]


def _place(frame: FrameType | None) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else "?"
