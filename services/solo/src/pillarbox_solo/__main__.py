"""`python -m pillarbox_solo demo`: ends with 0 after a clean stop, 2 for a wrong setting, 1 for the rest."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import uvloop

from pillarbox.errors import PillarboxError, SettingError
from pillarbox_solo.demo import Demo
from pillarbox_solo.terminal import Terminal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="pillarbox_solo", description="All of Pillarbox on one machine")
    parser.add_argument("what", choices=["demo"], help="a bot, a chat page and everything between")
    parser.add_argument("--folder", type=Path, default=Path(".pillarbox"), help="for data and settings")
    arguments = parser.parse_args()
    terminal = Terminal(sys.stdout, colour=sys.stdout.isatty())
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_demo(arguments.folder, terminal))
    except PillarboxError as error:
        sys.stderr.write(f"demo: {error}\n")
        raise SystemExit(2 if isinstance(error, SettingError) else 1) from None
    terminal.line("  Stopped. The next start finds the data as it is now.")
    raise SystemExit(0)


async def _demo(folder: Path, terminal: Terminal) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    await Demo(folder, Path.cwd(), os.environ, terminal).run(stop)


if __name__ == "__main__":
    main()
