"""The person's own bot, imported by a process of its own before the demo starts anything."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT, create_subprocess_exec
from collections.abc import Mapping

from pillarbox_solo.errors import LauncherError

WRONG_SETTING = 2
PREFIX = "dispatcher: "


async def tried(environment: Mapping[str, str], stop: asyncio.Event) -> str | None:
    """What is wrong with HANDLERS, in one line; None where nothing is, or `stop` came first.

    Raises LauncherError where the import ends its process.
    """
    command = (sys.executable, "-m", "pillarbox_dispatcher.trial")
    process = await create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT, env=dict(environment))
    talking = asyncio.ensure_future(process.communicate())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({talking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not talking.done():
            process.kill()
        said, _ = await talking
    finally:
        stopping.cancel()
    if stop.is_set() or process.returncode == 0:
        return None
    last = (said.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
    if process.returncode == WRONG_SETTING:
        return last.removeprefix(PREFIX)
    raise LauncherError(f"HANDLERS: the import ended its process with {process.returncode}: {last}")
