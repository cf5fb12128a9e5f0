"""Updates a second that one dispatcher handles from a full inbox, beside a bare loop of `feed_update`.

Both parse the same bytes and run the same handler. Ours leases each update from PostgreSQL and commits its
end; the yardstick has all of them in memory. With `--state` also for a handler that reads its FSM data,
and for one that changes it each time: ours are in PostgreSQL, and written with the end.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg

from pillarbox import db
from pillarbox_solo.ports import free_port
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.valkey import ValkeyServer
from tests.support.dispatching import TOKEN, inbox, incoming
from tests.support.servers import running

CHATS = 1000
COUNT = 8000
BAR = 0.6
TEXT = "x" * 350  # an update of about 600 bytes


def rate(
    module: list[str], settings: Mapping[str, str], result: Path, *, until_killed: bool
) -> tuple[float, float]:
    """What the process wrote when it had handled them all: updates a second, CPU microseconds an update."""
    result.unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, "-m", *module], env=os.environ | dict(settings))
    try:
        for _ in range(1200):
            if result.exists() and (written := result.read_text()):
                per_second, cpu_us = map(float, written.split())
                return per_second, cpu_us
            if process.poll() not in (None, 0):
                break
            time.sleep(0.1)
        raise RuntimeError(f"{module[0]} has not handled them all")
    finally:
        if until_killed:
            process.terminate()
        process.wait()


async def fill(url: str, first: int) -> None:
    async with inbox(url) as storage:
        for at in range(first, first + COUNT, 500):
            await storage.accept([incoming(n, n % CHATS, TEXT) for n in range(at, at + 500)])


def left(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM updates").fetchone()
    return int(row[0]) if row else 0


def rounds(
    url: str, redis_url: str, folder: Path, count: int, states: Sequence[str]
) -> list[dict[str, float]]:
    result = folder / "rate"
    settings = {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "BOT_TOKENS": TOKEN,
        "HANDLERS": "tests.bench.noop",
        "DISPATCHER_HOST": "127.0.0.1",
        "DISPATCHER_PORT": str(free_port()),
        "LOG_LEVEL": "warning",
        "NOOP_COUNT": str(COUNT),
        "NOOP_RESULT": str(result),
    }
    out = []
    first = 1
    for _ in range(count):
        figures: dict[str, float] = {}
        for state in states:
            asyncio.run(fill(url, first))
            first += COUNT
            figures |= compared(url, settings | {"NOOP_STATE": state}, result, f"_{state}" if state else "")
        print(" ".join(f"{name}={value:.2f}" for name, value in figures.items()), flush=True)
        out.append(figures)
    return out


def compared(url: str, settings: Mapping[str, str], result: Path, name: str) -> dict[str, float]:
    ours, cpu = rate(["pillarbox_dispatcher"], settings, result, until_killed=True)
    if left(url):
        raise RuntimeError("updates were left in the inbox")
    fed, fed_cpu = rate(["tests.bench.feed", str(CHATS), TEXT], settings, result, until_killed=False)
    return {
        f"dispatched{name}": ours,
        f"fed{name}": fed,
        f"ratio{name}": ours / fed,
        f"cpu_us{name}": cpu,
        f"fed_cpu_us{name}": fed_cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round")
    parser.add_argument("--state", action="store_true", help="also with FSM state, read and written")
    arguments = parser.parse_args()
    states = ("", "read", "write") if arguments.state else ("",)
    with (
        tempfile.TemporaryDirectory(prefix="pillarbox-bench-") as name,
        running(PostgresServer(Path(name) / "postgres")) as postgres,
        running(ValkeyServer(Path(name) / "valkey")) as valkey,
    ):
        db.migrate(postgres.url)
        figures = rounds(postgres.url, valkey.url, Path(name), 1 if arguments.short else 5, states)
    medians = {name: round(statistics.median(one[name] for one in figures), 3) for name in figures[0]}
    reached = all(value >= BAR for name, value in medians.items() if name.startswith("ratio"))
    print(json.dumps({"bench": "dispatch", **medians, "bar": BAR, "reached": reached}))


if __name__ == "__main__":
    main()
