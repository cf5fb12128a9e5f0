"""The command `run` of `pillarbox`."""

import gc
from typing import NoReturn

from pillarbox import loading


def run() -> NoReturn:
    """All services in one process: set BOT_TOKENS, HANDLERS, WEBHOOK_URL and WEBHOOK_SECRET."""
    loading.stop_ends_it()
    gc.disable()  # what aiogram builds stays for good: without collections it loads a quarter faster
    from pillarbox import process
    from pillarbox_solo.run import main
    from pillarbox_solo.settings import RunSettings

    gc.enable()
    process.run("run", RunSettings, main)
