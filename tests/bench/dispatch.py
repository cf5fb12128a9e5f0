"""Updates a second that one dispatcher handles from a full inbox, beside a bare loop of `feed_update`.

Both parse the same bytes and run the same handler. Ours leases each update from PostgreSQL and commits its
end; the yardstick has all of them in memory. With `--state` also for a handler that reads its FSM data,
and for one that changes it each time: ours are in PostgreSQL, and written with the end. Beside them, `fed_`
keeps states in the process's memory, and `fed_kept_` in Valkey, by aiogram's own storage. The bar is for what
does the same work: `ratio`, and `ratio_kept_`.
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
from dataclasses import dataclass
from pathlib import Path

from pillarbox import db
from pillarbox_solo.ports import free_port
from pillarbox_solo.postgres import PostgresServer
from pillarbox_solo.valkey import ValkeyServer
from tests.bench.cpu import used
from tests.support.dispatching import TOKEN, inbox, incoming
from tests.support.inbox import query
from tests.support.servers import running

CHATS = 1000
COUNT = 8000
BAR = 0.8
TEXT = "x" * 350  # an update of about 600 bytes


@dataclass(frozen=True, slots=True)
class Figure:
    """Updates a second, and microseconds of each: of the process, and of the servers it works with."""

    rate: float
    cpu_us: float
    servers_us: float


def figure(
    module: Sequence[str],
    settings: Mapping[str, str],
    servers: Sequence[int | None],
    *,
    until_killed: bool = False,
) -> Figure:
    """What the process wrote when it had handled them all."""
    result = Path(settings["NOOP_RESULT"])
    result.unlink(missing_ok=True)
    before = used(*servers)
    process = subprocess.Popen([sys.executable, "-m", *module], env=os.environ | dict(settings))
    try:
        for _ in range(1200):
            if result.exists() and (written := result.read_text()):
                rate, cpu_us = map(float, written.split())
                return Figure(rate, cpu_us, (used(*servers) - before) / COUNT * 1e6)
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
    return int(query(url, "SELECT count(*) FROM updates")[0][0])


def rounds(
    postgres: PostgresServer, valkey: ValkeyServer, folder: Path, count: int, states: Sequence[str]
) -> list[dict[str, float]]:
    settings = {
        "DATABASE_URL": postgres.url,
        "REDIS_URL": valkey.url,
        "BOT_TOKENS": TOKEN,
        "HANDLERS": "tests.bench.noop",
        "DISPATCHER_HOST": "127.0.0.1",
        "DISPATCHER_PORT": str(free_port()),
        "LOG_LEVEL": "warning",
        "NOOP_COUNT": str(COUNT),
        "NOOP_RESULT": str(folder / "rate"),
    }
    out = []
    first = 1
    for _ in range(count):
        figures: dict[str, float] = {}
        for state in states:
            asyncio.run(fill(postgres.url, first))
            query(postgres.url, "CHECKPOINT")  # each begins with the same debt
            first += COUNT
            figures |= compared(postgres, valkey, settings | {"NOOP_STATE": state}, state)
        print(" ".join(f"{name}={value:.2f}" for name, value in figures.items()), flush=True)
        out.append(figures)
    return out


def compared(
    postgres: PostgresServer, valkey: ValkeyServer, settings: Mapping[str, str], state: str
) -> dict[str, float]:
    name = f"_{state}" if state else ""
    ours = figure(["pillarbox_dispatcher"], settings, [postgres.pid], until_killed=True)
    if left(postgres.url):
        raise RuntimeError("updates were left in the inbox")
    loop = ["tests.bench.feed", str(CHATS), TEXT]
    fed = figure(loop, settings, [])
    figures = {
        f"dispatched{name}": ours.rate,
        f"fed{name}": fed.rate,
        f"ratio{name}": ours.rate / fed.rate,
        f"cpu_us{name}": ours.cpu_us,
        f"postgres_us{name}": ours.servers_us,
        f"fed_cpu_us{name}": fed.cpu_us,
    }
    if not state:
        return figures
    kept = figure([*loop, valkey.url], settings, [valkey.pid])
    return figures | {
        f"fed_kept{name}": kept.rate,
        f"ratio_kept{name}": ours.rate / kept.rate,
        f"fed_kept_cpu_us{name}": kept.cpu_us,
        f"fed_kept_valkey_us{name}": kept.servers_us,
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
        assert isinstance(postgres, PostgresServer)
        assert isinstance(valkey, ValkeyServer)
        db.migrate(postgres.url)
        figures = rounds(postgres, valkey, Path(name), 1 if arguments.short else 5, states)
    medians = {name: round(statistics.median(one[name] for one in figures), 3) for name in figures[0]}
    barred = [value for name, value in medians.items() if name == "ratio" or name.startswith("ratio_kept")]
    print(json.dumps({"bench": "dispatch", **medians, "bar": BAR, "reached": min(barred) >= BAR}))


if __name__ == "__main__":
    main()
