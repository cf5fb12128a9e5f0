"""Updates a second that ingest accepts, beside a FastAPI route that checks the secret and reads the body.

Both are one process under the same uvicorn flags; 40 connections post 600-byte updates of 1,000 chats. The
yardstick stores nothing. The ratio is the median of the ratios inside a round; the last line is JSON.
"""

import argparse
import asyncio
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import psycopg
import uvloop

from pillarbox import db
from pillarbox_solo.ports import free_port
from pillarbox_solo.postgres import PostgresServer
from tests.support.servers import running

BAR, GOAL = 0.5, 0.7
CONNECTIONS, CHATS, SIZE = 40, 1000, 600
BOT_ID, SECRET = 700_001, "for-tests-only"
TICKS = os.sysconf("SC_CLK_TCK")

_update_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two servers, while it runs."""

    name: str
    port: int
    pid: int

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass(frozen=True, slots=True)
class Round:
    rate: float
    cpu_us: float
    p99_ms: float


def request(update_id: int) -> bytes:
    chat = 5000 + update_id % CHATS
    message = {
        "message_id": update_id,
        "date": 1764000000,
        "chat": {"id": chat, "type": "private", "first_name": "Ann"},
        "from": {"id": chat, "is_bot": False, "first_name": "Ann"},
        "text": "",
    }
    update = {"update_id": update_id, "message": message}
    message["text"] = "x" * (SIZE - len(json.dumps(update)))
    body = json.dumps(update).encode()
    head = (
        f"POST /webhook/{BOT_ID} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"X-Telegram-Bot-Api-Secret-Token: {SECRET}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client(asyncio.Protocol):
    """One connection: the next request goes out when the last one's answer is here."""

    def __init__(self, until: float, done: asyncio.Future[None]) -> None:
        self.times: list[float] = []
        self._until = until
        self._done = done
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._post()

    def _post(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(request(next(_update_ids)))

    def data_received(self, data: bytes) -> None:
        if not data.startswith(b"HTTP/1.1 200"):
            self._done.set_exception(RuntimeError(data.split(b"\r\n")[0].decode()))
            return
        now = time.perf_counter()
        self.times.append(now - self._sent)
        if now < self._until:
            self._post()
        elif not self._done.done():
            self._done.set_result(None)


async def load(side: Side, seconds: float) -> Round:
    loop = asyncio.get_running_loop()
    before, started = side.cpu(), time.perf_counter()
    clients, ends = [], []
    for _ in range(CONNECTIONS):
        done = loop.create_future()
        connect = partial(Client, started + seconds, done)
        transport, client = await loop.create_connection(connect, "127.0.0.1", side.port)
        clients.append((transport, client))
        ends.append(done)
    await asyncio.gather(*ends)
    took = time.perf_counter() - started
    times = sorted(t for _, client in clients for t in client.times)
    for transport, _ in clients:
        transport.close()
    return Round(
        len(times) / took, (side.cpu() - before) / len(times) * 1e6, times[int(len(times) * 0.99)] * 1e3
    )


@contextmanager
def side(name: str, module: str, environment: dict[str, str]) -> Iterator[Side]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        env={**os.environ, **environment, "INGEST_PORT": str(port), "INGEST_HOST": "127.0.0.1"},
    )
    try:
        _wait(port)
        yield Side(name, port, process.pid)
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
        print(
            f"round {number + 1}: " + ", ".join(f"{n} {f.rate:.0f}/s" for n, f in figures.items()), flush=True
        )
    return results


def summary(results: list[tuple[Round, Round]]) -> dict[str, object]:
    ratio = statistics.median(ours.rate / noop.rate for noop, ours in results)
    cpu = statistics.median(ours.cpu_us / noop.cpu_us for noop, ours in results)
    return {
        "updates_per_s": round(statistics.median(ours.rate for _, ours in results)),
        "yardstick_per_s": round(statistics.median(noop.rate for noop, _ in results)),
        "ratio": round(ratio, 2),
        "cpu_ratio": round(cpu, 2),
        "cpu_us": round(statistics.median(ours.cpu_us for _, ours in results)),
        "p99_ms": round(statistics.median(ours.p99_ms for _, ours in results), 1),
        "bar": BAR,
        "goal": GOAL,
        "reached": ratio >= BAR,
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
            side("ingest", "pillarbox_ingest", settings) as ours,
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
