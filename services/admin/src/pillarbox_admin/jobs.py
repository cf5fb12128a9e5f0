"""Moves that go on after their request was answered. Each batch of one is whole, so what a crash or a stop of
admin cuts short has moved a part, and is simply asked for again: nothing of it is kept on disk."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from pillarbox.errors import StorageUnavailable
from pillarbox.ids import BotId
from pillarbox.inbox import Moved, Progress
from pillarbox.outbound.acts import MovedDead
from pillarbox.telemetry import get_logger

AT_ONCE = 1000
"""Updates or messages that are moved while the caller waits; a larger job is answered with its address."""
KEPT = 200

Act = Literal["retry", "discard"]
State = Literal["running", "done", "failed"]
Work = Callable[[Progress], Awaitable[Moved | MovedDead]]

log = get_logger()


@dataclass(slots=True)
class Job:
    """`moved` grows while it runs; `error` is why it ended before its end. Without a bot it is of all."""

    id: str
    act: Act
    bot_id: BotId | None
    by: str
    began_at: datetime
    ended_at: datetime | None = None
    moved: int = 0
    result: Moved | MovedDead | None = None
    error: Exception | None = field(default=None, repr=False)
    ended: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    large: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set when it has moved more than AT_ONCE, or has ended."""

    @property
    def state(self) -> State:
        if self.ended_at is None:
            return "running"
        return "done" if self.result is not None else "failed"

    def progress(self, moved: int) -> None:
        self.moved += moved
        if self.moved > AT_ONCE:
            self.large.set()

    def end(self, now: datetime) -> None:
        self.ended_at = now
        self.large.set()
        self.ended.set()

    async def wait(self, seconds: float) -> None:
        """Until it has ended, or so long."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return


class Jobs:
    """Those that run, and the last KEPT that have ended."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, act: Act, bot_id: BotId | None, by: str, work: Work) -> Job:
        """The job when it has ended, or has become a large one. Raises what ended it before that."""
        job = Job(secrets.token_hex(8), act, bot_id, by, datetime.now(UTC))
        task = self._group.create_task(self._run(job, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await job.large.wait()
        if job.error is not None:
            raise job.error
        if job.state == "running":
            self._keep(job)
        return job

    def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _run(self, job: Job, work: Work) -> None:
        try:
            job.result = await work(job.progress)
            job.moved = job.result.moved
        except asyncio.CancelledError:
            job.error = StorageUnavailable("admin stops")
            raise
        except Exception as error:  # whoever asked, or looks at the job, is told
            job.error = error
            if job.large.is_set():
                log.warning("job", act=job.act, bot_id=job.bot_id, moved=job.moved, exc_info=error)
        finally:
            job.end(datetime.now(UTC))

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        ended = [old.id for old in self._jobs.values() if old.state != "running"]
        for job_id in ended[: max(len(self._jobs) - KEPT, 0)]:
            del self._jobs[job_id]


@asynccontextmanager
async def jobs() -> AsyncIterator[Jobs]:
    """At its end those that still run are cut off between two batches."""
    async with asyncio.TaskGroup() as group:
        running = Jobs(group)
        try:
            yield running
        finally:
            running.stop()
