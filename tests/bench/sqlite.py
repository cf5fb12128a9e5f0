"""SQLite's storage and the engine, without HTTP and aiogram, beside pgpcbot's engine with accept.

`PGPCBOT_PYTHON=/path/of/a/venv/bin/python make bench ONLY=sqlite`; the last line is JSON. `one`: 40
producers accept one update each, as at a webhook; `batch`: one producer accepts 100, as from getUpdates.
`ratio` is the lower of the two; without a Python that has pgpcbot 0.1.1 there is none.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import End, Finished, Incoming, Lease
from pillarbox.inbox.sqlite import SQLiteStorage
from pillarbox_dispatcher.lanes import Lanes
from pillarbox_dispatcher.watchdog import Watchdog

BOT = BotId(1)
SHAPES = {"one": (1, 40), "batch": (100, 1)}
BAR = 2.0
PEER = Path(__file__).with_name("pgpcbot_engine.py")


@dataclass(frozen=True, slots=True)
class Figure:
    """Updates a second, and processor microseconds of each, of all threads."""

    rate: float
    cpu_us: float


def incoming(n: int) -> Incoming:
    body = b'{"update_id":%d,"message":{"text":"%s"}}' % (n, b"x" * 560)
    return Incoming(BOT, UpdateId(n), "message", f"chat:{n % 1000}", body, n % 1000, n % 1000)


async def ours(folder: str, count: int, batch: int, producers: int) -> Figure:
    storage = SQLiteStorage(f"{folder}/pillarbox.db")
    await storage.open()
    await storage.lock([BOT])
    done, stop = 0, asyncio.Event()

    async def handle(lease: Lease) -> End:
        nonlocal done
        done += 1
        return Finished(lease.token)

    watchdog = Watchdog(storage.renewer, lease=30, limit=0)
    lanes = Lanes(storage, handle, watchdog, concurrency=64)
    waiting = iter([incoming(n) for n in range(1, count + 1)])

    async def produce() -> None:
        while some := [update for _, update in zip(range(batch), waiting, strict=False)]:
            await storage.accept(some)

    watching, working = asyncio.create_task(watchdog.run(lanes.lost)), asyncio.create_task(lanes.run(stop, 5))
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(produce() for _ in range(producers)))
    while done < count or (await storage.counts(BOT)).pending:  # noqa: ASYNC110 - ends have no event
        await asyncio.sleep(0.005)
    took, used = time.perf_counter() - started, time.process_time() - cpu
    stop.set()
    await working
    watching.cancel()
    await storage.close()
    return Figure(count / took, used / count * 1e6)


def round_of(count: int, batch: int, producers: int, peer: str | None) -> tuple[Figure, Figure | None]:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        mine = asyncio.run(ours(folder, count, batch, producers))
        if peer is None:
            return mine, None
        command = [peer, str(PEER), folder, str(count), str(batch), str(producers)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return mine, Figure(*map(float, done.stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--pgpcbot", default=os.environ.get("PGPCBOT_PYTHON"), help="a Python that has pgpcbot 0.1.1"
    )
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--short", action="store_true")
    arguments = parser.parse_args()
    rounds = 1 if arguments.short else arguments.rounds
    figures: dict[str, float | bool | None] = {}
    ratios: list[float] = []
    for name, (batch, producers) in SHAPES.items():
        done = [round_of(arguments.updates, batch, producers, arguments.pgpcbot) for _ in range(rounds)]
        theirs = [peer for _, peer in done if peer is not None]
        for label, some in ((name, [mine for mine, _ in done]), (f"{name}_pgpcbot", theirs)):
            if some:
                figures[label] = round(statistics.median(one.rate for one in some))
                figures[f"{label}_cpu_us"] = round(statistics.median(one.cpu_us for one in some), 1)
        if theirs:
            ratios.append(statistics.median(mine.rate / peer.rate for mine, peer in done if peer))
            figures[f"{name}_ratio"] = round(ratios[-1], 2)
    ratio = round(min(ratios), 2) if ratios else None
    print(json.dumps(figures | {"ratio": ratio, "reached": None if ratio is None else ratio >= BAR}))


if __name__ == "__main__":
    main()
