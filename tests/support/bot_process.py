"""A process that handles a bot on its SQLite file: `python -m tests.support.bot_process FILE N`.

It fails N updates, says `ready`, then finishes whatever comes and prints its id, until its stdin is closed.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

from pillarbox.ids import BotId
from pillarbox.inbox.sqlite import SQLiteStorage
from tests.support.inbox import BOT, incoming


async def main(path: str, number: int) -> None:
    storage = SQLiteStorage(path)
    await storage.open()
    await storage.lock([BotId(BOT)])
    await storage.accept([incoming(n, lane=f"chat:{n}") for n in range(1, number + 1)])
    for lease in await storage.claim(number):
        await storage.fail(lease.token, "KeyError: 'city' at bot.py:31")
    print("ready", flush=True)
    closed = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not closed.done():
        for lease in await storage.claim(8):
            print(lease.update_id, flush=True)
            await storage.finish(lease.token)
        await storage.wait(0.05)
    await storage.close()


@contextmanager
def running_bot(path: Path, number: int) -> Iterator["Popen[str]"]:
    command = [sys.executable, "-m", "tests.support.bot_process", str(path), str(number)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(10)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
