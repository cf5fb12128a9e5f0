"""What the inbox itself costs: batches accepted, and turns of a dispatcher whose handlers do nothing.

`python -m tests.bench.inbox [--updates 20000]`; the last line is JSON.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
import uvloop

from pillarbox import db
from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.inbox.states import End, Finished, Incoming
from pillarbox.settings import InboxSettings, load
from pillarbox_solo.postgres import PostgresServer
from tests.bench.cpu import used
from tests.support.servers import running

BOT = BotId(1)
BODY = b'{"update_id":1,"message":{"text":"' + b"x" * 566 + b'"}}'
REPLY = b'{"method":"sendMessage","params":{"chat_id":42,"text":"hi"}}'


def updates(count: int, chats: int, first: int) -> list[Incoming]:
    return [
        Incoming(BOT, UpdateId(first + n), "message", f"chat:{n % chats}", BODY, n % chats, n % chats)
        for n in range(count)
    ]


async def fill(storage: PostgresStorage, batch: int, waiting: Sequence[Incoming]) -> float:
    """Updates a second, accepted in batches one after the other."""
    started = time.perf_counter()
    for at in range(0, len(waiting), batch):
        await storage.accept(waiting[at : at + batch])
    return len(waiting) / (time.perf_counter() - started)


async def drain(storage: PostgresStorage, lanes: int) -> int:
    """One loop of turns until nothing comes; every other update leaves an outbox row."""
    ends: list[End] = []
    done = 0
    while True:
        turn = await storage.turn(ends, lanes)
        done += len(turn.leases)
        ends = [Finished(lease.token, (REPLY,) if lease.row % 2 else ()) for lease in turn.leases]
        if not ends:
            return done


async def dispatched(storage: PostgresStorage, count: int, loops: int, lanes: int) -> float:
    started = time.perf_counter()
    done = await asyncio.gather(*(drain(storage, lanes) for _ in range(loops)))
    if sum(done) != count:
        raise RuntimeError(f"{sum(done)} of {count} updates came")
    return count / (time.perf_counter() - started)


def cpu(server: PostgresServer) -> float:
    """Seconds of processor time that the server and its children have used."""
    return used(server.pid)


async def measure(server: PostgresServer, url: str, count: int) -> dict[str, float]:
    storage = PostgresStorage(load(InboxSettings, database_url=url))
    await storage.open()
    figures: dict[str, float] = {}
    first = 1
    for name, batch, loops, lanes in (("batch18_64", 18, 1, 64), ("batch200_2x64", 200, 2, 64)):
        rates, ends, costs = [], [], []
        for _ in range(3):
            waiting = updates(count, 1000, first)
            first += count
            mine, theirs = time.process_time(), cpu(server)
            rates.append(await fill(storage, batch, waiting))
            middle = time.process_time(), cpu(server)
            ends.append(await dispatched(storage, count, loops, lanes))
            after = time.process_time(), cpu(server)
            costs.append([middle[0] - mine, middle[1] - theirs, after[0] - middle[0], after[1] - middle[1]])
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("TRUNCATE outbox")
        figures[f"accept_{name}"] = round(statistics.median(rates))
        figures[f"turn_{name}"] = round(statistics.median(ends))
        for what, values in zip(
            ("accept_us", "accept_pg_us", "turn_us", "turn_pg_us"), zip(*costs, strict=True), strict=True
        ):
            figures[f"{what}_{name}"] = round(statistics.median(values) / count * 1e6, 1)
    await storage.close()
    return figures


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=20_000)
    count = parser.parse_args().updates
    with (
        tempfile.TemporaryDirectory() as folder,
        running(PostgresServer(Path(folder) / "postgres")) as server,
    ):
        assert isinstance(server, PostgresServer)
        url = server.database("bench")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE bench")
        db.migrate(url)
        print(json.dumps(uvloop.run(measure(server, url, count))))


if __name__ == "__main__":
    main()
