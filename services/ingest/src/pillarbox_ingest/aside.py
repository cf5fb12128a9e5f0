"""What no update can be read from is kept and confirmed: Telegram would send it again for a day."""

from collections.abc import Awaitable, Callable

from pillarbox.inbox import Malformed
from pillarbox.telemetry import get_logger
from pillarbox_ingest import metrics

log = get_logger()

Keep = Callable[[Malformed], Awaitable[None]]


async def set_aside(keep: Keep, malformed: Malformed) -> None:
    """Raises StorageError where it could not be kept."""
    await keep(malformed)
    metrics.MALFORMED.labels(malformed.bot_id).inc()
    log.warning(
        "a malformed update is set aside",
        bot=malformed.bot_id,
        reason=malformed.reason,
        size=len(malformed.body),
    )
