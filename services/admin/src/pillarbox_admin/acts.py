"""What people do: one way for the API and the page, counted or logged, and audited by the name of a token."""

from prometheus_client import Counter

from pillarbox.ids import BotId
from pillarbox.inbox import Moved, Pin, Storage, Which
from pillarbox.telemetry import get_logger

MOVED = Counter("pillarbox_admin_moved_total", "Failed updates that people moved", ["act", "bot"])

log = get_logger()


class Acts:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def retry(self, bot_id: BotId, which: Which, by: str) -> Moved:
        """They wait again, at the ends of their lanes."""
        moved = await self._storage.requeue(bot_id, which, by)
        return self._noted("retry", bot_id, moved, by)

    async def discard(self, bot_id: BotId, which: Which, by: str) -> Moved:
        """They are forgotten."""
        moved = await self._storage.discard(bot_id, which, by)
        return self._noted("discard", bot_id, moved, by)

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

    @staticmethod
    def _noted(act: str, bot_id: BotId, moved: Moved, by: str) -> Moved:
        MOVED.labels(act, str(bot_id)).inc(moved.moved)
        log.info(act, bot_id=bot_id, by=by, moved=moved.moved, unknown=len(moved.unknown))
        return moved
