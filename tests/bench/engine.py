"""The engine without aiogram: handlers that do nothing, over the inbox on PostgreSQL; and accept alone.

`--peers` puts procrastinate (a lock for each chat) and pgqueuer (batch 500, no order) beside it, in a virtual
environment of its own that is thrown away. `row`: one plain INSERT a commit, by twenty connections;
`accept`: batches of 200, four at a time; `accept_one`: of one update, twenty at a time. `_pooled` is behind
PgBouncer, where it is installed; accept in batches of 18 there, as at a webhook, beside `accept_direct`.
"""

import argparse
import asyncio
import gc
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import uvloop

from pillarbox import db
from pillarbox.inbox import End, Finished, Lease
from pillarbox.inbox.connections import Pool
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from pillarbox_dispatcher.lanes import Lanes
from pillarbox_dispatcher.watchdog import Watchdog
from pillarbox_solo.postgres import PostgresServer
from tests.bench.inbox import BODY, REPLY, cpu, fill, updates
from tests.support.inbox import query
from tests.support.pgbouncer import PROGRAM, pooled
from tests.support.servers import running

CHATS, COUNT, SLOW_COUNT, ROWS = 5000, 20_000, 2000, 5000
CONCURRENCY = 64
"""The default; `engine_512` has as many at once as pgqueuer's batch."""
PEERS = ("procrastinate", "pgqueuer")
PACKAGES = ("procrastinate", "pgqueuer[asyncpg]", "psycopg[binary]", "uvloop")
RATIOS = {
    "procrastinate": ("engine", "procrastinate", 10.0),
    "pgqueuer": ("engine_512", "pgqueuer", 1.0),
    "pgqueuer_default": ("engine", "pgqueuer", 1.0),
    "row": ("accept", "row", 5.0),
}
"""Ours, theirs, and the bar."""
ROW = """
INSERT INTO one_row (bot_id, update_id, lane, kind, chat_id, body)
VALUES ($1::bigint, $2::bigint, $3::text, $4::text, $5::bigint, $6::bytea)
"""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Figure:
    rate: float
    app_us: float
    postgres_us: float


def figure(count: int, took: float, app: float, postgres: float) -> Figure:
    return Figure(count / took, app / count * 1e6, postgres / count * 1e6)


class Meter:
    """Time and processor time of this process and of PostgreSQL, since it was made."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._began = time.perf_counter(), time.process_time(), cpu(server)

    def figure(self, count: int) -> Figure:
        now = time.perf_counter(), time.process_time(), cpu(self._server)
        return figure(count, *(after - before for after, before in zip(now, self._began, strict=True)))


async def handle_all(storage: PostgresStorage, count: int, concurrency: int) -> None:
    """What a dispatcher does but for aiogram; every other update leaves a reply in the outbox."""
    done, stop, enough = 0, asyncio.Event(), asyncio.Event()

    async def handle(lease: Lease) -> End:
        nonlocal done
        async with asyncio.timeout(300):
            await asyncio.sleep(0)
        done += 1
        if done == count:
            enough.set()
        return Finished(lease.token, (REPLY,) if lease.row % 2 else ())

    watchdog = Watchdog(storage.renewer, lease=30, limit=0)
    lanes = Lanes(storage, handle, watchdog, concurrency=concurrency)
    watching = asyncio.create_task(watchdog.run(lanes.lost))
    working = asyncio.create_task(lanes.run(stop, 5))
    await enough.wait()
    stop.set()
    await working
    watching.cancel()
    await asyncio.wait({watching})


@contextmanager
def database(server: PostgresServer) -> Iterator[str]:
    """An empty one, so that nobody works in what another has left."""
    name = f"bench_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield server.database(name)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        connection.execute("CHECKPOINT")


def storage_of(url: str, through: str | None = None) -> PostgresStorage:
    return PostgresStorage(load(InboxSettings, database_url=through or url, database_direct_url=url))


async def engine(server: PostgresServer, url: str, concurrency: int, through: str | None = None) -> Figure:
    storage = storage_of(url, through)
    await storage.open()
    await fill(storage, 500, updates(COUNT, CHATS, 1))
    gc.collect()
    meter = Meter(server)
    await handle_all(storage, COUNT, concurrency)
    found = meter.figure(COUNT)
    await storage.close()
    return found


async def accepting(
    server: PostgresServer, url: str, count: int, batch: int, loops: int, through: str | None = None
) -> Figure:
    storage = storage_of(url, through)
    await storage.open()
    waiting = updates(count, 1000, 1)
    places = iter(range(0, count, batch))

    async def accept() -> None:
        for at in places:
            await storage.accept(waiting[at : at + batch])

    meter = Meter(server)
    await asyncio.gather(*(accept() for _ in range(loops)))
    found = meter.figure(count)
    await storage.close()
    return found


async def row_a_commit(server: PostgresServer, url: str) -> Figure:
    pool = Pool(url, 20)
    await pool.execute(
        "CREATE TABLE one_row (id bigint GENERATED ALWAYS AS IDENTITY, bot_id bigint, update_id bigint,"
        " lane text, kind text, chat_id bigint, body bytea, PRIMARY KEY (bot_id, update_id))"
    )
    numbers = iter(range(ROWS))

    async def insert() -> None:
        for n in numbers:
            await pool.execute(ROW, [1, n, f"chat:{n}", "message", n, BODY])

    meter = Meter(server)
    await asyncio.gather(*(insert() for _ in range(20)))
    found = meter.figure(ROWS)
    await pool.close()
    return found


def peer(name: str, python: Path | None, server: PostgresServer, url: str) -> Figure:
    count = SLOW_COUNT if name == "procrastinate" else COUNT
    script = Path(__file__).with_name("engine_peers.py")
    idle = cpu(server)
    done = subprocess.run(
        [str(python), script, name, url, str(count), str(CHATS)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    took, app = map(float, done.stdout.split())
    return figure(count, took, app, cpu(server) - idle)


@contextmanager
def peers_python(folder: Path) -> Iterator[Path]:
    subprocess.run([sys.executable, "-m", "uv", "venv", "-q", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", "-q", "-p", python, *PACKAGES], check=True)
    yield python


def one_round(server: PostgresServer, python: Path | None) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for name, concurrency in (("engine", CONCURRENCY), ("engine_512", 512)):
        with database(server) as url:
            db.migrate(url)
            found[name] = uvloop.run(engine(server, url, concurrency))
    if PROGRAM:
        with database(server) as url, tempfile.TemporaryDirectory() as folder:
            db.migrate(url)
            with pooled(url, Path(folder)) as through:
                found["accept_pooled"] = uvloop.run(accepting(server, url, COUNT, 18, 1, through))
                query(url, "TRUNCATE updates, lanes, seen")
                found["accept_direct"] = uvloop.run(accepting(server, url, COUNT, 18, 1))
                query(url, "TRUNCATE updates, lanes, seen")
                found["engine_pooled"] = uvloop.run(engine(server, url, CONCURRENCY, through))
    for name in PEERS if python else ():
        with database(server) as url:
            found[name] = peer(name, python, server, url)
    for name, shape in (("accept", (COUNT, 200, 4)), ("accept_one", (ROWS, 1, 20))):
        with database(server) as url:
            db.migrate(url)
            found[name] = uvloop.run(accepting(server, url, *shape))
    with database(server) as url:
        found["row"] = uvloop.run(row_a_commit(server, url))
    print(", ".join(f"{name} {one.rate:.0f}/s" for name, one in found.items()), flush=True)
    return found


def summary(rounds: Sequence[dict[str, Figure]]) -> dict[str, object]:
    """Ratios are medians of the ratios inside a round."""
    out: dict[str, object] = {"bench": "engine"}
    for name in rounds[0]:
        for column, digits in (("rate", 0), ("app_us", 1), ("postgres_us", 1)):
            middle = statistics.median(getattr(one[name], column) for one in rounds)
            out[f"{name}_{column}"] = round(middle, digits)
    reached = True
    for name, (ours, theirs, bar) in RATIOS.items():
        if theirs not in rounds[0]:
            out[f"x_{name}"] = "not measured: --peers"
            continue
        ratio = statistics.median(one[ours].rate / one[theirs].rate for one in rounds)
        out[f"x_{name}"], out[f"bar_{name}"] = round(ratio, 2), bar
        reached = reached and ratio >= bar
    return out | {"reached": reached}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round")
    parser.add_argument("--peers", action="store_true", help="install the peers for this run, and run them")
    arguments = parser.parse_args()
    gc.set_threshold(50_000)  # as the dispatcher does, and the peers here
    with (
        tempfile.TemporaryDirectory(prefix="pillarbox-bench-") as folder,
        running(PostgresServer(Path(folder) / "postgres")) as server,
    ):
        assert isinstance(server, PostgresServer)
        if arguments.peers:
            with peers_python(Path(folder) / "peers") as python:
                rounds = [one_round(server, python) for _ in range(1 if arguments.short else 5)]
        else:
            print("procrastinate and pgqueuer are left out; --peers installs and runs them", flush=True)
            rounds = [one_round(server, None) for _ in range(1 if arguments.short else 5)]
    print(json.dumps(summary(rounds)))


if __name__ == "__main__":
    main()
