"""What people do: one way for the API and the page, counted or logged, and audited by the name of a token."""

from typing import Protocol

from prometheus_client import Counter

from pillarbox.ids import BotId
from pillarbox.inbox import Moved, Pin, Progress, Storage, Which
from pillarbox.telemetry import get_logger
from pillarbox_admin.jobs import Act, Job, Jobs

MOVED = Counter("pillarbox_admin_moved_total", "Failed updates that people moved", ["act", "bot"])

log = get_logger()


class Move(Protocol):
    async def __call__(self, bot_id: BotId, which: Which, by: str, *, progress: Progress) -> Moved: ...


class Acts:
    """Retry and discard answer when all is done, or with a job that goes on: one that is large."""

    def __init__(self, storage: Storage, jobs: Jobs) -> None:
        self._storage = storage
        self._jobs = jobs

    async def retry(self, bot_id: BotId, which: Which, by: str) -> Job:
        """They wait again, at the ends of their lanes."""
        return await self._begin("retry", self._storage.requeue, bot_id, which, by)

    async def discard(self, bot_id: BotId, which: Which, by: str) -> Job:
        """They are forgotten."""
        return await self._begin("discard", self._storage.discard, bot_id, which, by)

    async def trust(self, bot_id: BotId, user_id: int, fingerprint: str, by: str) -> Pin:
        """This person's key is the trusted one from now on."""
        pin = await self._storage.trust(bot_id, user_id, fingerprint, by)
        log.info("trust", bot_id=bot_id, user_id=user_id, by=by)
        return pin

    async def forget(self, bot_id: BotId, user_id: int, by: str) -> Pin | None:
        """The pin that is gone; None where none was."""
        pin = await self._storage.forget(bot_id, user_id, by)
        log.info("forget", bot_id=bot_id, user_id=user_id, by=by, found=pin is not None)
        return pin

    async def _begin(self, act: Act, move: Move, bot_id: BotId, which: Which, by: str) -> Job:
        async def work(progress: Progress) -> Moved:
            def counted(moved: int) -> None:
                MOVED.labels(act, str(bot_id)).inc(moved)
                progress(moved)

            moved = await move(bot_id, which, by, progress=counted)
            log.info(act, bot_id=bot_id, by=by, moved=moved.moved, unknown=len(moved.unknown))
            return moved

        return await self._jobs.begin(act, bot_id, by, work)
