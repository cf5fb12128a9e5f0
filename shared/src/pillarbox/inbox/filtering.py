"""Which failed updates: by id, by a filter, or all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from pillarbox.ids import UpdateId
from pillarbox.inbox.kept import error_type
from pillarbox.inbox.states import FailedUpdate

INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Filter:
    """Everything that is given must hold. ValueError: a value that no failed update can have."""

    since: datetime | None = None
    """Failed then or later."""
    until: datetime | None = None
    """Failed before then."""
    kind: str | None = None
    chat_id: int | None = None
    error: str | None = None
    """The error's type, such as `KeyError`."""
    update_ids: tuple[UpdateId, ...] | None = None

    def __post_init__(self) -> None:
        if any(at is not None and at.tzinfo is None for at in (self.since, self.until)):
            raise ValueError("since and until need a time zone, such as datetime.now(UTC)")
        if any(text is not None and not _storable(text) for text in (self.kind, self.error)):
            raise ValueError("kind and error have a character that no such word has")
        if self.chat_id is not None and not is_int64(self.chat_id):
            raise ValueError("chat_id is a whole number of 64 bits")
        if not all(map(is_int64, self.update_ids or ())):
            raise ValueError("update_ids are whole numbers of 64 bits")

    def takes(self, failed: FailedUpdate) -> bool:
        return (
            (self.since is None or failed.failed_at >= self.since)
            and (self.until is None or failed.failed_at < self.until)
            and (self.kind is None or failed.kind == self.kind)
            and (self.chat_id is None or failed.chat_id == self.chat_id)
            and (self.error is None or error_type(failed.error) == self.error)
            and (self.update_ids is None or failed.update_id in self.update_ids)
        )


Which: TypeAlias = Sequence[UpdateId] | Filter | None
"""Failed updates by id, by a filter, or (None) all of the bot."""

Progress: TypeAlias = Callable[[int], None]
"""Is told after each batch how many it moved."""


def unheard(moved: int) -> None:
    """The progress that nobody looks at."""


def is_int64(number: int) -> bool:
    return -INT64 <= number < INT64


def _storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
