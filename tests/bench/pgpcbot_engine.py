"""pgpcbot's storage and engine, without HTTP: its own Python runs this, beside `tests.bench.sqlite`.

Arguments: a folder, how many updates, how many in a batch, how many producers. Prints updates a second,
and processor microseconds of each.
"""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

TEXT = "x" * 500


def updates(count: int) -> Iterator[dict[str, Any]]:
    for n in range(1, count + 1):
        chat = {"id": n % 1000, "type": "private"}
        yield {"updateId": n, "message": {"id": n, "chat": chat, "text": TEXT}}


async def main(folder: str, count: int, batch: int, producers: int) -> None:
    from pgpcbot import SQLiteStorage  # type: ignore[import-not-found] # in its own environment only
    from pgpcbot.engine import Engine  # type: ignore[import-not-found]

    storage = SQLiteStorage(f"{folder}/pgpcbot.db")
    storage.open(1)
    storage.try_lock()

    async def process(_: Mapping[str, Any]) -> None: ...

    engine = Engine(storage, process, concurrency=64)
    waiting = updates(count)
    in_order = asyncio.Lock()  # it drops an id that comes after a higher one

    async def produce() -> None:
        while True:
            await engine.room()
            async with in_order:
                some = [update for _, update in zip(range(batch), waiting, strict=False)]
                if not some:
                    return
                await engine.submit(some)

    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(produce() for _ in range(producers)))
    await engine.drained()
    took, used = time.perf_counter() - started, time.process_time() - cpu
    if engine.processed != count:
        raise RuntimeError(f"{engine.processed} of {count} were processed")
    print(count / took, used / count * 1e6)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
