"""Messages a second of one sender with a full door, beside a bare aiohttp loop with as many calls in flight.

Both are one process and call the same sink, which answers at once; a rate is from the first call to the last.
The limits are in force, and set out of the way.
The ratio is the median of the ratios inside a round. `idle_p50_ms` is from a push to its arrival when nothing
else waits. The last line is JSON.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from redis.asyncio import Redis

from pillarbox_solo.valkey import ValkeyServer
from tests.bench.cpu import used
from tests.bench.sink import Sink, running_sink
from tests.support.sending import OUT_OF_THE_WAY, QUEUE, SenderProcess, message, senders, until
from tests.support.servers import running

BAR = 0.4
IDLE_BAR_MS = 20.0
CHATS = 1000
PUSHES = 40
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Figure:
    """From the first call to the last: a second, and processor microseconds of each, of these processes."""

    rate: float
    cpu_us: float
    valkey_us: float = 0.0


async def figure(sink: Sink, count: int, pid: int, valkey: int | None = None) -> Figure:
    await sink.wait(1, PATIENCE)
    before, valkey_before = used(pid), used(valkey)
    await sink.wait(count, PATIENCE)
    cpu, valkey_cpu = used(pid) - before, used(valkey) - valkey_before
    seconds = sink.arrived[-1] - sink.arrived[0]
    return Figure((count - 1) / seconds, cpu / count * 1e6, valkey_cpu / count * 1e6)


async def bare(sink: Sink, count: int) -> Figure:
    sink.arrived.clear()
    loop = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.send_bare", sink.url, str(count)
    )
    found = await figure(sink, count, loop.pid)
    await loop.wait()
    return found


async def sent(sink: Sink, redis: "Redis", sender: SenderProcess, count: int, valkey: int | None) -> Figure:
    sink.arrived.clear()
    await redis.flushall()
    await redis.rpush(QUEUE, *(message(n % CHATS + 1, f"message {n}") for n in range(count)))
    async with senders([sender]):
        found = await figure(sink, count, sender.pid, valkey)
        await sender.stop()
    return found


async def idle(sink: Sink, redis: "Redis", sender: SenderProcess) -> float:
    """Median ms from a push to its arrival."""
    waits = []
    async with senders([sender]):
        await until(lambda: redis.exists(f"{QUEUE}:heartbeat:{sender.name}"))
        await asyncio.sleep(1)
        for n in range(PUSHES):
            sink.arrived.clear()
            begun = time.perf_counter()
            await redis.rpush(QUEUE, message(n + 1, "one"))
            await sink.wait(1, 10)
            waits.append((sink.arrived[0] - begun) * 1000)
            await asyncio.sleep(0.05)
        await sender.stop()
    return statistics.median(waits)


async def bench(rounds: int, count: int, folder: Path) -> dict[str, object]:
    with running(ValkeyServer(folder / "valkey")) as valkey:
        async with running_sink() as sink, Redis.from_url(valkey.url) as redis:
            sender = SenderProcess(valkey.url, sink.url, folder, "bench", **OUT_OF_THE_WAY)
            pairs = []
            for n in range(rounds):
                theirs = await bare(sink, count)
                ours = await sent(sink, redis, sender, count, valkey.pid)
                pairs.append((ours, theirs))
                print(
                    f"round {n + 1}: {ours.rate:.0f}/s {ours.cpu_us:.0f} us"
                    f" beside {theirs.rate:.0f}/s {theirs.cpu_us:.0f} us",
                    flush=True,
                )
            p50 = await idle(sink, redis, sender)
    return summary(pairs, p50)


def summary(pairs: Sequence[tuple[Figure, Figure]], p50: float) -> dict[str, object]:
    ratio = statistics.median(ours.rate / theirs.rate for ours, theirs in pairs)
    return {
        "bench": "send",
        "messages_per_s": round(statistics.median(ours.rate for ours, _ in pairs)),
        "cpu_us": round(statistics.median(ours.cpu_us for ours, _ in pairs), 1),
        "valkey_cpu_us": round(statistics.median(ours.valkey_us for ours, _ in pairs), 1),
        "bare_per_s": round(statistics.median(theirs.rate for _, theirs in pairs)),
        "bare_cpu_us": round(statistics.median(theirs.cpu_us for _, theirs in pairs), 1),
        "ratio": round(ratio, 3),
        "bar": BAR,
        "idle_p50_ms": round(p50, 2),
        "idle_bar_ms": IDLE_BAR_MS,
        "reached": ratio >= BAR and p50 < IDLE_BAR_MS,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    with tempfile.TemporaryDirectory() as folder:
        result = uvloop.run(bench(1 if short else 5, 2000 if short else 5000, Path(folder)))
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
