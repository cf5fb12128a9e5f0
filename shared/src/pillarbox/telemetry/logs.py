"""structlog, JSON in containers and readable in a terminal.

An exception is logged as its type and its place: its message may quote what a person wrote or a token.
"""

import logging
import re
import sys
import traceback
from types import TracebackType
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

TOKEN = re.compile(r"\d{5,15}:[A-Za-z0-9_-]{10,}")
FRAMES = 8

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def configure(service: str, log_format: str = "auto", level: str = "info") -> None:
    """Once, at the start of a process. Libraries' own logs take the same way."""
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _error_without_text,
        _without_tokens,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if text else structlog.processors.JSONRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "uvicorn.error", "aiogram.event"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.contextvars.bind_contextvars(service=service)


def get_logger() -> Any:
    return structlog.stdlib.get_logger()


def place(error: BaseException) -> str:
    """Where an error was raised: `file.py:31`, without anything that it says."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"


def _error_without_text(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info if isinstance(info, BaseException) else info[1] if info else None
    if error is None:
        return event
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    event["error"] = _type_name(error)
    event["frames"] = [f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames]
    return event


def _type_name(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__}[{', '.join(_type_name(e) for e in error.exceptions)}]"
    return type(error).__qualname__


def _without_tokens(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The last line of defence: a library may log an address with a token in it."""
    return {key: _clean(value) for key, value in event.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return TOKEN.sub("***", value)
    if isinstance(value, dict):
        return {key: _clean(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(part) for part in value]
    return value
