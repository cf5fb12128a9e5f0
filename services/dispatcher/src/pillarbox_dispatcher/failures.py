"""What is kept of an error: type, message and place, as in `KeyError: 'city' at bot.py:31`."""

import os
import sys
import sysconfig
import traceback
from types import FrameType

from pydantic import ValidationError

import pillarbox
from pillarbox.telemetry.logs import TOKEN

MAX_MESSAGE = 2000

_OTHERS = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {os.path.join(os.path.dirname(path), "") for path in (pillarbox.__file__, __file__)}
    | {"<"}
)


def describe(error: BaseException, message: str = "") -> str:
    """One text for the failed list, with `message` where it has none. It may hold what a person wrote: never
    log it."""
    text = f"{type(error).__qualname__}: {_message(error) or message}".rstrip(": ")
    where = place(error)
    return _storable(f"{text} at {where}" if where else text)


def without_message(error: BaseException) -> str:
    """For the failed list where the update was sealed: type and place, and nothing that could quote it."""
    where = place(error)
    return f"{type(error).__name__} at {where}" if where else type(error).__name__


def unreadable(error: ValidationError) -> str:
    """Why aiogram cannot read a body: fields and kinds of problem, without any of its text."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)[:3]
    named = (f"{'.'.join(map(str, problem['loc'])) or 'body'}: {problem['type']}" for problem in problems)
    return _storable(f"the update cannot be read: {', '.join(named)}")


def place(error: BaseException) -> str | None:
    """The innermost line in the user's own code, as `file.py:31`; None when there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if _is_users(frame.filename):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return None


def running_in(thread: int) -> str:
    """Where a thread is now, as `file.py:31 function`: in the user's code if it is there at all."""
    innermost = frame = sys._current_frames().get(thread)
    while frame is not None and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return _frame(frame or innermost)


def _frame(frame: FrameType | None) -> str:
    if frame is None:
        return "?"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_name}"


def _is_users(filename: str) -> bool:
    return not filename.startswith(_OTHERS)


def _message(error: BaseException) -> str:
    try:
        message = str(error)
    except BaseException:  # it is the handler's own code
        return ""
    return TOKEN.sub("***", message[:MAX_MESSAGE])


def _storable(text: str) -> str:
    """PostgreSQL's text takes neither NUL nor half a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
