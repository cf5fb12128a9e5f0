"""Retry and discard of dead messages: counted, logged, and a job where they are many."""

from prometheus_client import Counter

from pillarbox.outbound.acts import MovedDead, Progress, Which
from pillarbox.outbound.dead import DeadFilter
from pillarbox.telemetry import get_logger
from pillarbox_admin.jobs import Act, Job
from pillarbox_admin.parts import Parts

MOVED = Counter("pillarbox_admin_dead_moved", "Dead messages that people moved", ["act"])

log = get_logger()


async def move(given: Parts, act: Act, which: Which, by: str) -> Job:
    """The job when all is done, or when it has become a large one that goes on."""
    verb = given.outbound.acts.retry if act == "retry" else given.outbound.acts.discard

    async def work(progress: Progress) -> MovedDead:
        def counted(moved: int) -> None:
            MOVED.labels(act).inc(moved)
            progress(moved)

        moved = await verb(which, by, progress=counted)
        log.info(f"{act} dead", by=by, moved=moved.moved, unknown=len(moved.unknown))
        return moved

    bot_id = which.bot_id if isinstance(which, DeadFilter) else None
    return await given.jobs.begin(act, bot_id, by, work)
