"""Station 1 to 2: where updates wait between "received from Telegram" and "handled"."""

from pillarbox.inbox.states import (
    Accepted,
    End,
    Failed,
    Finished,
    Incoming,
    Later,
    Lease,
    Malformed,
    Moved,
    OutboxRow,
    Released,
    Turn,
)
from pillarbox.inbox.storage import Renewer, Storage

__all__ = [
    "Accepted",
    "End",
    "Failed",
    "Finished",
    "Incoming",
    "Later",
    "Lease",
    "Malformed",
    "Moved",
    "OutboxRow",
    "Released",
    "Renewer",
    "Storage",
    "Turn",
]
