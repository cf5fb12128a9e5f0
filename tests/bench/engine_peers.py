"""Two queues on PostgreSQL that people use, for `tests.bench.engine`: their own Python runs this.

Arguments: a peer, the database, how many jobs, how many chats. Prints seconds, and processor seconds.
"""

import gc
import sys
import time
from typing import Any

BODY = b'{"update_id":1,"message":{"text":"' + b"x" * 566 + b'"}}'
BATCH = 500


async def procrastinate(url: str, count: int, chats: int) -> tuple[float, float]:
    """A lock for each chat, as order in a chat needs; twenty at once, done jobs deleted."""
    from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]
    from procrastinate.jobs import Job  # type: ignore[import-not-found]

    app = App(connector=PsycopgConnector(conninfo=url))
    done = 0

    @app.task(name="update", queue="updates")  # type: ignore[untyped-decorator]
    async def update(**_: Any) -> None:
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        jobs = [
            Job(
                queue="updates",
                task_name="update",
                lock=f"chat:{n % chats}",
                queueing_lock=None,
                task_kwargs={"body": BODY.decode()},
            )
            for n in range(count)
        ]
        for at in range(0, count, BATCH):
            await app.job_manager.batch_defer_jobs_async(jobs[at : at + BATCH])
        started, cpu = time.perf_counter(), time.process_time()
        await app.run_worker_async(
            wait=False, concurrency=20, delete_jobs="successful", listen_notify=False,
            install_signal_handlers=False,
        )  # fmt: skip
        took = time.perf_counter() - started, time.process_time() - cpu
    if done != count:
        raise RuntimeError(f"{done} of {count} jobs ran")
    return took


async def pgqueuer(url: str, count: int, _: int) -> tuple[float, float]:
    """Its best batch; no order of any kind."""
    import asyncpg  # type: ignore[import-not-found]
    from pgqueuer import PgQueuer  # type: ignore[import-not-found]
    from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
    from pgqueuer.queries import Queries  # type: ignore[import-not-found]
    from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found]

    driver = AsyncpgDriver(await asyncpg.connect(url))
    queries = Queries(driver)
    await queries.install()
    for _at in range(0, count, BATCH):
        await queries.enqueue(["update"] * BATCH, [BODY] * BATCH, [0] * BATCH)
    queue, done = PgQueuer(driver), 0

    @queue.entrypoint("update")  # type: ignore[untyped-decorator]
    async def update(_: Any) -> None:
        nonlocal done
        done += 1

    gc.collect()
    started, cpu = time.perf_counter(), time.process_time()
    await queue.qm.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    took = time.perf_counter() - started, time.process_time() - cpu
    if done != count:
        raise RuntimeError(f"{done} of {count} jobs ran")
    return took


def main() -> None:
    import uvloop

    gc.set_threshold(50_000)
    peer, url, count, chats = sys.argv[1:]
    measured = {"procrastinate": procrastinate, "pgqueuer": pgqueuer}[peer]
    print(*uvloop.run(measured(url, int(count), int(chats))))


if __name__ == "__main__":
    main()
