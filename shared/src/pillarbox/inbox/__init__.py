"""Station 1 to 2: where updates wait between "received from Telegram" and "handled"."""

from pillarbox.inbox.filtering import Filter, Which
from pillarbox.inbox.states import (
    Accepted,
    Audited,
    Counts,
    End,
    Failed,
    FailedUpdate,
    Finished,
    Incoming,
    Later,
    Lease,
    Limits,
    Malformed,
    Moved,
    OutboxRow,
    Pin,
    Place,
    Released,
    Turn,
)
from pillarbox.inbox.storage import Renewer, Storage

__all__ = [
    "Accepted",
    "Audited",
    "Counts",
    "End",
    "Failed",
    "FailedUpdate",
    "Filter",
    "Finished",
    "Incoming",
    "Later",
    "Lease",
    "Limits",
    "Malformed",
    "Moved",
    "OutboxRow",
    "Pin",
    "Place",
    "Released",
    "Renewer",
    "Storage",
    "Turn",
    "Which",
]
