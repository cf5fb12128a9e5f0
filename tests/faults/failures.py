"""The failed list, as the Python API shows it."""

import re
from pathlib import Path

from pillarbox import Client
from tests.faults.load import Said
from tests.support.stack import BOT_ID, Stack

MARKER = re.compile(r"#(\d+):(\d+)")


async def failed_list(stack: Stack) -> list[Said]:
    """Chat and number of every update on it, repeats included."""
    if stack.store == "sqlite" and not Path(stack.database_url).exists():
        return []
    async with Client(stack.database_url, bot_id=BOT_ID) as client:
        texts = [item.payload["message"]["text"] async for item in client.failed_updates()]
    found = [MARKER.match(text) for text in texts]
    return [(int(match[1]), int(match[2])) for match in found if match]
