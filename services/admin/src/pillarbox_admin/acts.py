"""Retry and discard: one way for the API and the page, counted, and audited by the name of a token."""

from collections.abc import Sequence

from prometheus_client import Counter

from pillarbox.ids import BotId, UpdateId
from pillarbox.inbox import Moved, Storage
from pillarbox.telemetry import get_logger
from pillarbox_admin.inbox_reader import InboxReader
from pillarbox_admin.reader import Asked, Reader

MOVED = Counter("pillarbox_admin_moved_total", "Failed updates that people moved", ["act", "bot"])

Which = Sequence[UpdateId] | Asked | None
"""Failed updates by id, by a filter, or (None) all of the bot."""

log = get_logger()


class Acts:
    def __init__(self, storage: Storage, reader: Reader | InboxReader) -> None:
        self._storage = storage
        self._reader = reader

    async def retry(self, bot_id: BotId, which: Which, by: str) -> Moved:
        """They wait again, at the ends of their lanes."""
        moved = await self._storage.requeue(bot_id, await self._ids(bot_id, which), by)
        return self._noted("retry", bot_id, moved, by)

    async def discard(self, bot_id: BotId, which: Which, by: str) -> Moved:
        """They are forgotten."""
        moved = await self._storage.discard(bot_id, await self._ids(bot_id, which), by)
        return self._noted("discard", bot_id, moved, by)

    async def _ids(self, bot_id: BotId, which: Which) -> Sequence[UpdateId] | None:
        return await self._reader.failed_ids(bot_id, which) if isinstance(which, Asked) else which

    @staticmethod
    def _noted(act: str, bot_id: BotId, moved: Moved, by: str) -> Moved:
        MOVED.labels(act, str(bot_id)).inc(moved.moved)
        log.info(act, bot_id=bot_id, by=by, moved=moved.moved, unknown=len(moved.unknown))
        return moved
