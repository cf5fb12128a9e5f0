"""`python -m pillarbox_solo demo`, or `run`: ends with 0 after a clean stop, 2 for a wrong setting, or 1."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import uvloop

from pillarbox.errors import PillarboxError, SettingError
from pillarbox_solo import command
from pillarbox_solo.terminal import Terminal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="pillarbox_solo", description="All of Pillarbox on one machine")
    parser.add_argument(
        "what",
        choices=["demo", "run"],
        help="`demo`: a bot, a chat page and everything between; `run`: your own bot",
    )
    parser.add_argument("--folder", type=Path, default=Path(".pillarbox"), help="for data and settings")
    parser.add_argument(
        "--store", choices=["sqlite", "postgres"], default="sqlite", help="where the demo keeps it"
    )
    arguments = parser.parse_args()
    if arguments.what == "run":
        command.run()
    demo(arguments.folder, arguments.store)


def demo(folder: Path, store: str) -> NoReturn:
    terminal = Terminal(sys.stdout, colour=sys.stdout.isatty())
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_demo(folder, store, terminal))
    except PillarboxError as error:
        sys.stderr.write(f"demo: {error}\n")
        raise SystemExit(2 if isinstance(error, SettingError) else 1) from None
    terminal.line("  Stopped. The next start finds the data as it is now.")
    raise SystemExit(0)


async def _demo(folder: Path, store: str, terminal: Terminal) -> None:
    from pillarbox_solo.demo import Demo
    from pillarbox_solo.stores import STORES

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    await Demo(folder, Path.cwd(), os.environ, terminal, STORES[store]).run(stop)


if __name__ == "__main__":
    main()
