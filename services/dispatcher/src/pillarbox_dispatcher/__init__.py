"""Station 2: leases updates, in order per lane, and runs their aiogram handlers."""

from pillarbox_dispatcher.answers import AnswerIsQueued, Queued, direct
from pillarbox_dispatcher.outbox import Outbox
from pillarbox_dispatcher.retry import RetryUpdate

__all__ = ["AnswerIsQueued", "Outbox", "Queued", "RetryUpdate", "direct"]
