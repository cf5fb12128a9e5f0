"""From the POST of an update to its reply's arrival at the Bot API, at 50/s, beside aiogram's own webhook.

Both answer each message through the same simulator. Ours stores, leases, commits, queues and sends; the
yardstick stores nothing. Figures are milliseconds; the ratio is that of the p50s in a round, in which both
take turns, slice by slice: what else the machine does meets both.
"""

import argparse
import asyncio
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from pillarbox_solo.ports import free_port
from pillarbox_solo.valkey import ValkeyServer
from tests.bench.cpu import used
from tests.support.simulator_client import SimulatorClient
from tests.support.stack import BOT_ID, SECRET, Stack, running

RATE = 50
CHATS = 100
SLICES = 4
BAR = 3.0


_firsts = itertools.count(1, 10_000)
"""Where the update ids of a slice begin."""


@dataclass(frozen=True, slots=True)
class Side:
    """Where to post, and the processes that do all of its work: database and queue are among them."""

    name: str
    url: str
    pids: Sequence[int | None]


def update(number: int, marker: str) -> bytes:
    chat = 5000 + number % CHATS
    person = {"id": chat, "is_bot": False, "first_name": "Ann"}
    message = {
        "message_id": number,
        "date": int(time.time()),
        "chat": {"id": chat, "type": "private", "first_name": "Ann"},
        "from": person,
        "text": marker,
    }
    return json.dumps({"update_id": number, "message": message}).encode()


async def measure(url: str, simulator: SimulatorClient, seconds: float, first: int) -> list[float]:
    """Milliseconds from each POST to its reply's arrival."""
    posted: dict[str, float] = {}
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET, "Content-Type": "application/json"}
    count = int(seconds * RATE)
    async with aiohttp.ClientSession() as session:

        async def post(number: int) -> None:
            marker = f"r{number}"
            body = update(number, marker)
            posted[marker] = time.time()
            async with session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 200, answer.status

        loop = asyncio.get_running_loop()
        start = loop.time()
        async with asyncio.TaskGroup() as group:
            for i in range(count):
                await asyncio.sleep(max(0.0, start + i / RATE - loop.time()))
                group.create_task(post(first + i))
        for _ in range(100):
            arrived = await _arrivals(simulator, posted)
            if len(arrived) == count:
                return [(at - posted[marker]) * 1000 for marker, at in arrived.items()]
            await asyncio.sleep(0.1)
    raise RuntimeError(f"{count - len(arrived)} of {count} replies did not arrive")


async def _arrivals(simulator: SimulatorClient, posted: dict[str, float]) -> dict[str, float]:
    calls = await simulator.ledger(method="sendMessage", after=min(posted.values()) - 1)
    return {c["params"]["text"]: c["at"] for c in calls if c["params"]["text"] in posted}


@contextmanager
def yardstick(stack: Stack) -> Iterator["Side"]:
    """aiogram answering from its own webhook server."""
    port = free_port()
    environment = {**stack.services["ingest"].environment, "YARDSTICK_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.aiogram_webhook"], env=environment)
    url = f"http://127.0.0.1:{port}/webhook"
    try:
        _await_port(port)
        yield Side("aiogram", url, (process.pid,))
    finally:
        process.terminate()
        process.wait()


def _await_port(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the yardstick did not start")


def product(stack: Stack) -> Side:
    services = [stack.services[name].process for name in ("ingest", "dispatcher", "sender")]
    assert isinstance(stack.valkey, ValkeyServer)
    pids = (*(one.pid for one in services if one), stack.postgres.pid, stack.valkey.pid)
    return Side("ours", f"{stack.services['ingest'].url}/webhook/{BOT_ID}", pids)


async def rounds(stack: Stack, theirs: Side, count: int, seconds: float) -> list[dict[str, float]]:
    sides = (product(stack), theirs)
    async with aiohttp.ClientSession() as session:
        simulator = SimulatorClient(stack.simulator.url, session)
        for side in sides:
            await measure(side.url, simulator, 1.0, next(_firsts))  # warm-up
        return [await one_round(simulator, sides, seconds) for _ in range(count)]


async def one_round(simulator: SimulatorClient, sides: Sequence[Side], seconds: float) -> dict[str, float]:
    taken: dict[str, list[float]] = {side.name: [] for side in sides}
    cpu = dict.fromkeys(taken, 0.0)
    for _ in range(SLICES):
        for side in sides:
            before = used(*side.pids)
            taken[side.name] += await measure(side.url, simulator, seconds / SLICES, next(_firsts))
            cpu[side.name] += used(*side.pids) - before
    figures = {}
    for name, times in taken.items():
        figures[f"{name}_p50"] = statistics.median(times)
        figures[f"{name}_p99"] = statistics.quantiles(times, n=100)[98]
        figures[f"{name}_cpu_us"] = cpu[name] / len(times) * 1e6
    figures["ratio"] = figures["ours_p50"] / figures["aiogram_p50"]
    print(" ".join(f"{name}={value:.2f}" for name, value in figures.items()), flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    settings = {"HANDLERS": "tests.bench.echo", "LOG_LEVEL": "warning"}
    with (
        tempfile.TemporaryDirectory(prefix="pillarbox-bench-") as folder,
        running(Path(folder), settings, admin=0) as stack,
        yardstick(stack) as theirs,
    ):
        figures = asyncio.run(rounds(stack, theirs, 1 if short else 5, 4.0 if short else 8.0))
    medians = {name: round(statistics.median(f[name] for f in figures), 2) for name in figures[0]}
    print(json.dumps({"bench": "reply", **medians, "bar": BAR, "reached": medians["ratio"] <= BAR}))


if __name__ == "__main__":
    main()
