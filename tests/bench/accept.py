"""Updates a second that ingest accepts, beside a FastAPI route that checks the secret and reads the body.

Both are one process under the same uvicorn flags; 40 connections post 600-byte updates of 1,000 chats. The
yardstick stores nothing. The ratio is the median of the ratios inside a round. `paced_`: at 200 a second, ms
from each POST to its answer. CPU is that of a server with all below it, PostgreSQL's apart; the last line is
JSON.
"""

import argparse
import json
import os
import signal
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
from pillarbox_solo.ports import free_port
from pillarbox_solo.postgres import PostgresServer
from tests.bench.cpu import used
from tests.bench.posting import BOT_ID, SECRET, Connections
from tests.support.servers import running

BAR = 0.7
PACE, BAR_PACED_MS = 200, 8.0


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two servers, while it runs. `postgres` is None where it stores nothing."""

    name: str
    port: int
    pid: int
    postgres: int | None


@dataclass(frozen=True, slots=True)
class Round:
    """As many as it could, and then at a pace."""

    rate: float
    cpu_us: float
    postgres_us: float
    p99_ms: float
    paced_p50_ms: float
    paced_p99_ms: float
    paced_cpu_us: float


async def load(side: Side, seconds: float) -> Round:
    async with Connections(side.port) as connections:
        began, mine, theirs = time.perf_counter(), used(side.pid), used(side.postgres)
        flood = await connections.flood(seconds)
        took = time.perf_counter() - began
        cpu, postgres = used(side.pid) - mine, used(side.postgres) - theirs
    async with Connections(side.port) as connections:
        mine = used(side.pid)
        paced = await connections.paced(PACE, int(PACE * seconds))
        cpu_paced = used(side.pid) - mine
    return Round(
        rate=len(flood) / took,
        cpu_us=cpu / len(flood) * 1e6,
        postgres_us=postgres / len(flood) * 1e6,
        p99_ms=percentile(flood, 99),
        paced_p50_ms=percentile(paced, 50),
        paced_p99_ms=percentile(paced, 99),
        paced_cpu_us=cpu_paced / len(paced) * 1e6,
    )


def percentile(times: Sequence[float], of: int) -> float:
    """Of sorted seconds, in ms."""
    return times[len(times) * of // 100] * 1e3


@contextmanager
def side(name: str, module: str, environment: dict[str, str], postgres: int | None = None) -> Iterator[Side]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        env={**os.environ, **environment, "INGEST_PORT": str(port), "INGEST_HOST": "127.0.0.1"},
    )
    try:
        _wait(port)
        yield Side(name, port, process.pid, postgres)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _wait(port: int) -> None:
    from urllib.error import URLError
    from urllib.request import urlopen

    for _ in range(200):
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            pass
        time.sleep(0.05)
    raise RuntimeError("the server is not ready")


async def measure(noop: Side, ours: Side, rounds: int, seconds: float) -> list[tuple[Round, Round]]:
    for one in (noop, ours):
        await load(one, seconds / 2)
    results = []
    for number in range(rounds):
        first, second = (noop, ours) if number % 2 == 0 else (ours, noop)
        figures = {first.name: await load(first, seconds), second.name: await load(second, seconds)}
        results.append((figures["noop"], figures["ingest"]))
        print(f"round {number + 1}: {', '.join(told(*one) for one in figures.items())}", flush=True)
    return results


def told(name: str, one: Round) -> str:
    return f"{name} {one.rate:.0f}/s {one.cpu_us:.0f} us, p99 {one.paced_p99_ms:.1f} ms at {PACE}/s"


def summary(results: list[tuple[Round, Round]]) -> dict[str, object]:
    ratio = statistics.median(ours.rate / noop.rate for noop, ours in results)
    paced = statistics.median(ours.paced_p99_ms for _, ours in results)

    def middle(side: int, column: str, digits: int | None = None) -> float:
        values: list[float] = [getattr(one[side], column) for one in results]
        return round(statistics.median(values), digits)

    return {
        "bench": "accept",
        "updates_per_s": middle(1, "rate"),
        "yardstick_per_s": middle(0, "rate"),
        "ratio": round(ratio, 2),
        "bar": BAR,
        "cpu_us": middle(1, "cpu_us"),
        "postgres_cpu_us": middle(1, "postgres_us"),
        "yardstick_cpu_us": middle(0, "cpu_us"),
        "p99_ms": middle(1, "p99_ms", 1),
        "paced_per_s": PACE,
        **{f"paced_{name}_ms": middle(1, f"paced_{name}_ms", 2) for name in ("p50", "p99")},
        **{f"yardstick_paced_{name}_ms": middle(0, f"paced_{name}_ms", 2) for name in ("p50", "p99")},
        "bar_paced_p99_ms": BAR_PACED_MS,
        "paced_cpu_us": middle(1, "paced_cpu_us"),
        "yardstick_paced_cpu_us": middle(0, "paced_cpu_us"),
        "reached": ratio >= BAR and paced < BAR_PACED_MS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round of a second")
    short = parser.parse_args().short
    with (
        tempfile.TemporaryDirectory() as folder,
        running(PostgresServer(Path(folder) / "postgres")) as server,
    ):
        assert isinstance(server, PostgresServer)
        url = server.database("bench")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE bench")
        db.migrate(url)
        settings = {"DATABASE_URL": url, "BOT_TOKENS": f"{BOT_ID}:{'A' * 35}", "WEBHOOK_SECRET": SECRET}
        with (
            side("noop", "tests.bench.accept_noop", settings) as noop,
            side("ingest", "pillarbox_ingest", settings, server.pid) as ours,
        ):
            results = uvloop.run(measure(noop, ours, *((1, 1.0) if short else (5, 4.0))))
        with psycopg.connect(url) as connection:
            stored, counted = connection.execute(
                "SELECT (SELECT count(*) FROM updates), (SELECT sum(pending) FROM lanes)"
            ).fetchone() or (0, 0)
    if stored != counted:
        raise RuntimeError(f"{stored} rows, {counted} counted")
    print(json.dumps(summary(results)))


if __name__ == "__main__":
    main()
