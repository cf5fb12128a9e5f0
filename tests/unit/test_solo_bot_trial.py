"""The demo asks whether the bot can be used before it starts anything."""

import asyncio
import os
from pathlib import Path

import pytest

from pillarbox_solo.bot_trial import tried
from pillarbox_solo.errors import LauncherError

GOOD = "from aiogram import Router\nrouter = Router()\nprint('loaded')\n"


def given(folder: Path, source: str, handlers: str = "trial_bot") -> dict[str, str]:
    (folder / "trial_bot.py").write_text(source)
    return os.environ | {"PYTHONPATH": str(folder), "HANDLERS": handlers}


@pytest.mark.parametrize(
    ("source", "handlers", "says"),
    [
        (GOOD, "trial_bot", None),
        ("def (", "trial_bot", "HANDLERS: trial_bot cannot be imported (SyntaxError"),
        ("x = 1", "trial_bot", "HANDLERS: trial_bot has no `router`"),
        (GOOD, "trial_bot.py", "HANDLERS: it names a module, as `import` does: without .py"),
        (GOOD, "./trial_bot", "HANDLERS: it names a module, as `import` does: names with dots"),
    ],
)
async def test_one_line_or_nothing(source: str, handlers: str, says: str | None, tmp_path: Path) -> None:
    found = await tried(given(tmp_path, source, handlers), asyncio.Event())
    assert (found is None) == (says is None), found
    assert (found or "").startswith(says or "")


async def test_a_bot_that_ends_its_process(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="the import ended its process with 7: bye"):
        await tried(given(tmp_path, "import os\nprint('bye', flush=True)\nos._exit(7)"), asyncio.Event())


async def test_a_stop_ends_an_import_that_does_not_end(tmp_path: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, stop.set)
    async with asyncio.timeout(10):
        assert await tried(given(tmp_path, "import time\ntime.sleep(600)"), stop) is None
