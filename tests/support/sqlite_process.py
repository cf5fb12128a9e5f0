"""A process that accepts or handles on a SQLite file until it is killed; it prints what it confirmed.

`python -m tests.support.sqlite_process accept|handle|hold|fill PATH [first number]`
"""

import asyncio
import itertools
import resource
import signal
import sys

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import End, Finished, Incoming, Limits
from pillarbox.inbox.sqlite import SQLiteStorage

BOT = BotId(42)


def say(*words: object) -> None:
    print(*words, flush=True)


async def accept(storage: SQLiteStorage, numbers: "itertools.count[int]") -> None:
    async def one() -> None:
        for n in numbers:
            body = b'{"update_id":%d}' % n
            await storage.accept([Incoming(BOT, UpdateId(n), "message", f"chat:{n % 5}", body, n % 5, n % 5)])
            say(n)

    await asyncio.gather(*(one() for _ in range(8)))


async def handle(storage: SQLiteStorage) -> None:
    """Says `run` before and `done` after each; every update queues one message."""
    await storage.lock([BOT])
    say("locked")
    ends: list[End] = []
    while True:
        turn = await storage.turn(ends, 4)
        for end in ends:
            say("done", end.token)
        for lease in turn.leases:
            say("run", lease.update_id, lease.run)
        ends = [Finished(lease.token, (b"%d" % lease.update_id,)) for lease in turn.leases]
        if not ends:
            await asyncio.sleep(0.01)


async def hold(storage: SQLiteStorage) -> None:
    """Takes one lease and never ends it."""
    await storage.lock([BOT])
    (lease,) = await storage.claim(1)
    say("run", lease.update_id, lease.run)
    await asyncio.sleep(3600)


async def fill(storage: SQLiteStorage) -> None:
    """Until no file may grow; then room is made, and it goes on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, most))
    for n in itertools.count():
        update = Incoming(BOT, UpdateId(n), "message", "chat:1", b"x" * 100_000 + b"%d" % n, 1, 1)
        try:
            await storage.accept([update])
            say("accepted", n)
        except StorageUnavailable as error:
            say("full", error)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            await storage.accept([update])
            say("accepted", n)
            return


async def main(what: str, path: str, first: int = 0) -> None:
    storage = SQLiteStorage(path, Limits(lease=30))
    await storage.open()
    match what:
        case "accept":
            await accept(storage, itertools.count(first))
        case "handle":
            await handle(storage)
        case "hold":
            await hold(storage)
        case "fill":
            await fill(storage)
    await storage.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
