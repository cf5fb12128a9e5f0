"""How long an accept takes while a million old rows of `seen` are swept, beside the same without a sweep."""

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from pathlib import Path

import uvloop

from pillarbox import db
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.postgres import PostgresServer
from tests.bench.engine import database
from tests.bench.inbox import cpu
from tests.support.backlog import remember, settle
from tests.support.inbox import incoming, query
from tests.support.servers import running

OLD, EVERY, ALONE = 1_000_000, 0.005, 10.0
BAR = 3.0

_ids = itertools.count(10_000_000)


async def accepting(storage: PostgresStorage, until: asyncio.Event) -> list[float]:
    """One update each five milliseconds, whether or not the one before has been accepted."""
    took: list[float] = []

    async def one() -> None:
        started = time.perf_counter()
        number = next(_ids)
        await storage.accept([incoming(number, lane=f"chat:{number % 1000}")])
        took.append(time.perf_counter() - started)

    async with asyncio.TaskGroup() as group:
        while not until.is_set():
            group.create_task(one())
            await asyncio.sleep(EVERY)
    return took


async def alone(storage: PostgresStorage) -> list[float]:
    ended = asyncio.Event()
    asyncio.get_running_loop().call_later(ALONE, ended.set)
    return await accepting(storage, ended)


async def beside(storage: PostgresStorage, sweeper: PostgresStorage) -> tuple[list[float], float]:
    ended, started = asyncio.Event(), time.perf_counter()
    accepts = asyncio.create_task(accepting(storage, ended))
    await sweeper.sweep()
    seconds = time.perf_counter() - started
    ended.set()
    return await accepts, seconds


async def measure(server: PostgresServer, url: str) -> dict[str, float]:
    stores = [PostgresStorage(load(InboxSettings, database_url=url)) for _ in range(2)]
    for storage in stores:
        await storage.open()
    idle = cpu(server)
    before = await alone(stores[0])
    accepting = cpu(server) - idle
    during, seconds = await beside(*stores)
    sweeping = cpu(server) - idle - accepting * (1 + len(during) / len(before))
    for storage in stores:
        await storage.close()
    if query(url, "SELECT count(*) FROM seen WHERE accepted_at < now() - interval '72 hours'") != [(0,)]:
        raise RuntimeError("old rows are left")
    return {
        "alone_p99_ms": p99(before),
        "beside_p99_ms": p99(during),
        "ratio": p99(during) / p99(before),
        "sweep_s": seconds,
        "swept_per_s": OLD / seconds,
        "swept_postgres_us": sweeping / OLD * 1e6,
        "accept_postgres_us": accepting / len(before) * 1e6,
    }


def p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)] * 1e3


def one_round(server: PostgresServer) -> dict[str, float]:
    with database(server) as url:
        db.migrate(url)
        remember(url, OLD, hours=100)
        settle(url)
        found = uvloop.run(measure(server, url))
    print(" ".join(f"{name}={value:.2f}" for name, value in found.items()), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round")
    rounds = 1 if parser.parse_args().short else 5
    with (
        tempfile.TemporaryDirectory(prefix="pillarbox-bench-") as folder,
        running(PostgresServer(Path(folder) / "postgres")) as server,
    ):
        assert isinstance(server, PostgresServer)
        found = [one_round(server) for _ in range(rounds)]
    medians = {name: round(statistics.median(one[name] for one in found), 2) for name in found[0]}
    print(json.dumps({"bench": "sweep", **medians, "bar": BAR, "reached": medians["ratio"] <= BAR}))


if __name__ == "__main__":
    main()
