"""What the simulator carries: sendMessage calls a second with the ledger on, and updates delivered a second.

The server is one process; `calls_per_core` is what it carries in one second of its own CPU time.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import aiohttp
import uvloop

from pillarbox_solo.ports import free_port
from tests.bench.cpu import used
from tests.support.simulator_client import SimulatorClient

TOKEN = "700001:for-tests-only-AAAAAAAAAAAAAAAAAAAAAAAA"
BOT_ID = 700_001
CONNECTIONS = 32
BAR = 8_000
UPDATES = 2_000
CHATS = 200


class Caller(asyncio.Protocol):
    """One connection that sends its next call when the last one was answered."""

    def __init__(self, chat_id: int) -> None:
        self.chat_id = chat_id
        self.answered = 0
        self.stopping = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._call()

    def _call(self) -> None:
        body = b'{"chat_id":%d,"text":"#%d:%d"}' % (self.chat_id, self.chat_id, self.answered + 1)
        head = b"POST /bot%b/sendMessage HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        length = b"content-length: %d\r\n\r\n" % len(body)
        self.transport.write(head % TOKEN.encode() + length + body)

    def data_received(self, data: bytes) -> None:
        assert data.startswith((b"HTTP/1.1 200", b"{")), data[:60]
        if not data.endswith(b"}}"):  # the head may come apart from the body
            return
        self.answered += 1
        if self.stopping:
            self.transport.close()
            self.ended.set_result(None)
        else:
            self._call()


class Acceptor(asyncio.Protocol):
    """A webhook that accepts at once."""

    def __init__(self, accepted: asyncio.Semaphore) -> None:
        self.accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self.accepted.release()
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """The port and the process id."""
    port = free_port()
    environment = os.environ | {
        "SIMULATOR_HOST": "127.0.0.1",
        "SIMULATOR_PORT": str(port),
        "LOG_LEVEL": "warning",
    }
    with subprocess.Popen([sys.executable, "-m", "pillarbox_simulator"], env=environment) as process:
        try:
            yield port, process.pid
        finally:
            process.terminate()


async def calls(port: int, seconds: float) -> dict[int, int]:
    """How many calls each chat got within `seconds`."""
    loop = asyncio.get_running_loop()
    connecting = (
        loop.create_connection(lambda chat=chat: Caller(chat), "127.0.0.1", port)  # type: ignore[misc]
        for chat in range(1, CONNECTIONS + 1)
    )
    callers = [protocol for _, protocol in await asyncio.gather(*connecting)]
    await asyncio.sleep(seconds)
    for caller in callers:
        caller.stopping = True
    await asyncio.gather(*(caller.ended for caller in callers))
    return {caller.chat_id: caller.answered for caller in callers}


async def updates(port: int, control: SimulatorClient, session: aiohttp.ClientSession) -> float:
    """Seconds that the delivery of `UPDATES` updates over `CHATS` chats takes."""
    accepted = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Acceptor(accepted), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    base = f"http://127.0.0.1:{port}/bot{TOKEN}"
    async with listening, session.post(f"{base}/setWebhook", json={"url": url}):
        started = time.perf_counter()
        await control.say([{"bot_id": BOT_ID, "chat_id": n % CHATS + 1, "text": "x"} for n in range(UPDATES)])
        for _ in range(UPDATES):
            await accepted.acquire()
        taken = time.perf_counter() - started
    async with session.post(f"{base}/deleteWebhook"):
        return taken


async def measure(port: int, pid: int, rounds: int, seconds: float) -> dict[str, Any]:
    rates, cores, deliveries, update_cpus = [], [], [], []
    async with aiohttp.ClientSession() as session:
        control = SimulatorClient(f"http://127.0.0.1:{port}", session)
        await _ready(session, port)
        for _ in range(rounds):
            before, started = used(pid), time.perf_counter()
            answered = await calls(port, seconds)
            taken, cpu = time.perf_counter() - started, used(pid) - before
            rates.append(sum(answered.values()) / taken)
            cores.append(sum(answered.values()) / cpu)
            await _complete(session, port, answered)
            before = used(pid)
            deliveries.append(UPDATES / await updates(port, control, session))
            update_cpus.append((used(pid) - before) / UPDATES)
    return {
        "calls_per_s": round(statistics.median(rates)),
        "calls_per_core": round(statistics.median(cores)),
        "call_cpu_us": round(1e6 / statistics.median(cores), 1),
        "updates_per_s": round(statistics.median(deliveries)),
        "update_cpu_us": round(statistics.median(update_cpus) * 1e6, 1),
        "bar": BAR,
        "reached": statistics.median(cores) >= BAR,
    }


async def _ready(session: aiohttp.ClientSession, port: int) -> None:
    for _ in range(200):
        try:
            async with session.get(f"http://127.0.0.1:{port}/readyz"):
                return
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(0.05)
    raise RuntimeError("the simulator did not start")


async def _complete(session: aiohttp.ClientSession, port: int, answered: dict[int, int]) -> None:
    """Every call that was answered is in the ledger, once and in order."""
    expected = {str(chat): count for chat, count in answered.items()}
    async with session.post(f"http://127.0.0.1:{port}/_ctl/check", json={"expected": expected}) as answer:
        counts = (await answer.json())["counts"]
    assert not any(counts.values()), counts
    async with session.post(f"http://127.0.0.1:{port}/_ctl/reset"):
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round")
    short = parser.parse_args().short
    with server() as (port, pid):
        result = uvloop.run(measure(port, pid, 1 if short else 5, 1.0 if short else 2.0))
    print(json.dumps(result))
    return 0 if result["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
