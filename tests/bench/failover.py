"""How long lanes wait: after `kill -9` of their dispatcher, after its clean stop, and for a wake-up.

Two real dispatchers over one PostgreSQL. `killed`: from the kill until each of its lanes is handled by the
other. `stopped`: the same from SIGTERM, in the middle of a backlog. `woken`: from the commit of an update to
its handler, nothing else going on.
"""

import argparse
import asyncio
import itertools
import json
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pillarbox.ids import BotId
from pillarbox.inbox.postgres import PostgresStorage
from pillarbox.settings import InboxSettings, load
from tests.support.dispatching import incoming
from tests.support.stack import BOT_ID, Service, Stack, running

LEASE = 5.0
LANES, AHEAD = 20, 120
BAR_KILLED, BAR_STOPPED, BAR_WOKEN = LEASE + 2, 1.0, 0.010

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Note:
    at: float
    chat: int
    message: int
    pid: int


def notes(file: Path) -> list[Note]:
    lines = file.read_text().splitlines() if file.exists() else []
    found = [line.split() for line in lines]
    return [Note(float(at), int(chat), int(message), int(pid)) for at, chat, message, pid in found]


async def accept(storage: PostgresStorage, chats: range, text: str, each: int = 1) -> None:
    updates = [incoming(next(_ids), chat, text, bot_id=BOT_ID) for _ in range(each) for chat in chats]
    await storage.accept(updates)


async def until(reached: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not reached():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)


async def killed(stack: Stack, storage: PostgresStorage, file: Path, chats: range) -> list[float]:
    """One dispatcher holds all the lanes; the other one is there, and gets them."""
    one, other = stack.of("dispatcher")
    _, heir = await _one_has_all(one, other, storage, file, chats, "hold")
    await asyncio.sleep(random.uniform(0, LEASE / 3))
    began = time.monotonic()
    one.kill()
    await until(lambda: len(_first(file, chats, heir, began)) == LANES)
    return [at - began for at in _first(file, chats, heir, began).values()]


async def stopped(stack: Stack, storage: PostgresStorage, file: Path, chats: range) -> list[float]:
    """Handlers take 50 ms, and more waits in each lane."""
    one, other = stack.of("dispatcher")
    _, heir = await _one_has_all(one, other, storage, file, chats, "sleep")
    began = time.monotonic()
    one.signal(signal.SIGTERM)
    await until(lambda: len(_first(file, chats, heir, began)) == LANES)
    one.stop()
    return [at - began for at in _first(file, chats, heir, began).values()]


async def _one_has_all(
    one: Service, other: Service, storage: PostgresStorage, file: Path, chats: range, text: str
) -> tuple[int, int]:
    """Both run, and the first one, whose pid comes first, works in all these lanes."""
    for service in (one, other):
        if service.process is not None and service.process.poll() is None:
            service.kill()
    one.start()
    one.ready()
    pid = _pid(one)
    each, argument = (1, str(pid)) if text == "hold" else (AHEAD, "0.05")
    await accept(storage, chats, f"{text} {argument}", each)
    await until(lambda: len(_first(file, chats, pid, 0)) == LANES)
    other.start()
    other.ready()
    return pid, _pid(other)


async def idle(storage: PostgresStorage) -> None:
    """What a round left is done, so that it takes no places of the next one's."""
    async with asyncio.timeout(60):
        while (await storage.counts(BotId(BOT_ID))).pending:  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.1)


async def woken(storage: PostgresStorage, file: Path, count: int) -> list[float]:
    took = []
    for n in range(count):
        await asyncio.sleep(random.uniform(0.1, 0.2))
        chat = 900_000 + n
        await accept(storage, range(chat, chat + 1), "now")
        began = time.monotonic()
        await until(lambda chat=chat: any(note.chat == chat for note in notes(file)[-5:]))  # type: ignore[misc]
        took.append(next(note.at for note in notes(file) if note.chat == chat) - began)
    return took


def _first(file: Path, chats: range, pid: int, since: float) -> dict[int, float]:
    """When this process began with each of the chats, for the first time since then."""
    found: dict[int, float] = {}
    for note in notes(file):
        if note.chat in chats and note.pid == pid and note.at >= since:
            found.setdefault(note.chat, note.at)
    return found


def _pid(service: Service) -> int:
    assert service.process is not None
    return service.process.pid


async def measure(stack: Stack, file: Path, rounds: int) -> dict[str, object]:
    storage = PostgresStorage(load(InboxSettings, database_url=stack.database_url))
    await storage.open()
    after_kill, after_stop = [], []
    wakes = await woken(storage, file, 40 * rounds)
    for number in range(rounds):
        first = 1000 * (number + 1)
        after_kill += await killed(stack, storage, file, range(first, first + LANES))
        after_stop += await stopped(stack, storage, file, range(first + LANES, first + 2 * LANES))
        await idle(storage)
        print(f"killed {max(after_kill):.2f} s, stopped {max(after_stop, default=0):.2f} s", flush=True)
    await storage.close()
    wake = statistics.median(wakes)
    reached = max(after_kill) <= BAR_KILLED and max(after_stop) < BAR_STOPPED and wake < BAR_WOKEN
    return {
        "bench": "failover",
        "lease_s": LEASE,
        "killed_most_s": round(max(after_kill), 2),
        "stopped_most_s": round(max(after_stop), 3),
        "stopped_lanes": len(after_stop),
        "woken_p50_ms": round(wake * 1e3, 2),
        "woken_p99_ms": round(sorted(wakes)[int(len(wakes) * 0.99)] * 1e3, 2),
        "bar_killed_s": BAR_KILLED,
        "bar_stopped_s": BAR_STOPPED,
        "bar_woken_ms": BAR_WOKEN * 1e3,
        "reached": reached,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round")
    rounds = 1 if parser.parse_args().short else 5
    with tempfile.TemporaryDirectory(prefix="pillarbox-bench-") as folder:
        file = Path(folder) / "notes"
        settings = {"HANDLERS": "tests.bench.noted", "NOTED": str(file), "LEASE": str(LEASE)}
        with running(Path(folder), settings, dispatcher=2, sender=0, admin=0) as stack:
            print(json.dumps(asyncio.run(measure(stack, file, rounds))))


if __name__ == "__main__":
    main()
