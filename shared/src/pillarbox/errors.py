"""Every error that crosses a module's border.

    PillarboxError
    ├── SettingError            a setting is missing or wrong: the process ends with exit code 2
    ├── StorageError
    │   ├── StorageUnavailable  passing: the database is away, full or slow; the same call may be tried again
    │   │   └── StorageLocked   somebody else's open transaction holds a row of this call
    │   │       └── LeasesLocked  and so some of these leases are not renewed
    │   ├── StorageRefused      final: the database will never take this data; set it aside
    │   └── PollingConflictError  another process receives and handles this bot's updates
    ├── FingerprintRefused      final: a text that is no fingerprint of a key
    ├── AccessRefused           final: the token is none of ADMIN_TOKENS, or has not the right
    ├── RequestRefused          final: admin refused what it was asked, and says why
    ├── UnknownBot              final: nothing was ever stored of this bot
    ├── QueueUnavailable        passing: Redis is away, full or slow; the same call may be tried again
    │   └── QueueFull           Redis takes no more, until something leaves it or it is given more memory
    ├── MessageRefused          final: an element that is no outbound message, with the reason
    ├── FileGone                final: the bytes of a message's file are no longer there
    └── MessageKept             kept in flight: a later run, configured otherwise, can read this element

What is passing is retried by a loop with back-off; what is final is told to a person and kept.
"""

from collections.abc import Mapping
from typing import Any

from pillarbox.ids import Token


class PillarboxError(Exception):
    """The root of them all. Its text holds no token and no text of a message."""


class SettingError(PillarboxError):
    """One line: the setting's name, what is wrong with it, and the fix.

    `id` is that of a check which people know, as E009; `pillarbox check` shows the parts apart.
    """

    def __init__(self, problem: str, *, fix: str = "", id: str = "") -> None:
        super().__init__(f"{problem}{f' ({id})' if id else ''}{f'; {fix}' if fix else ''}")
        self.problem, self.fix, self.id = problem, fix, id


class StorageError(PillarboxError):
    """The inbox could not do what it was asked."""


class StorageUnavailable(StorageError):
    """Passing: nothing was changed, or it is unknown whether the last call took effect."""


class StorageLocked(StorageUnavailable):
    """Passing: nothing was changed, as somebody else's open transaction holds a row that is needed."""


class LeasesLocked(StorageLocked):
    """`locked` are neither renewed nor lost, `lost` are lost, and the others of the call are renewed."""

    def __init__(self, locked: frozenset[Token], lost: frozenset[Token]) -> None:
        super().__init__(f"{len(locked)} leases were not renewed, somebody else holds their lanes")
        self.locked = locked
        self.lost = lost


class StorageRefused(StorageError):
    """Final: this data cannot be stored. What was stored beside it is untouched."""


class PollingConflictError(StorageError):
    """This process must not receive or handle the bot's updates. The text names the one that does."""


class FingerprintRefused(PillarboxError, ValueError):
    """Final: this is no fingerprint of a key."""


class AccessRefused(PillarboxError):
    """Final: admin does not know the token, or the token has not the right."""


class RequestRefused(PillarboxError):
    """Final: admin answered with a problem (RFC 9457) of these members, and what admin adds to them."""

    def __init__(self, status: int, members: Mapping[str, Any]) -> None:
        super().__init__(f"admin refused it ({status}): {members.get('detail', '')}")
        self.status, self.members = status, members


class UnknownBot(PillarboxError):
    """Final: nothing was ever stored of this bot; its id may be mistyped."""


class QueueUnavailable(PillarboxError):
    """Passing: Redis did not answer, or answered that it cannot take writes now."""


class QueueFull(QueueUnavailable):
    """Passing: Redis has no memory left. Nothing was changed; what frees memory still works."""


class MessageRefused(PillarboxError):
    """Final: the element is no outbound message. `reason` is one word for metrics and lists."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class MessageKept(PillarboxError):
    """A refused pickle, or an envelope of a newer version. `reason` is one word."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FileGone(PillarboxError):
    """Final: the key of a message's file expired, or was never set. The text is the file's id."""
