"""Where a page of a list ended, as an opaque word for the caller to bring back."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime

from pillarbox.ids import RowId
from pillarbox.inbox import Place
from pillarbox_admin.problems import Problem

LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """Lists run from the newest to the oldest: the next page has what is before this."""

    at: datetime
    row: RowId

    @property
    def place(self) -> Place:
        return Place(self.at, self.row)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(f"{self.at.isoformat()}|{self.row}".encode()).decode().rstrip("=")

    @classmethod
    def read(cls, word: str) -> "Cursor":
        """Raises Problem 400 for a word that no page gave."""
        try:
            at, _, row = (
                base64.b64decode(word + "=" * (-len(word) % 4), b"-_", validate=True).decode().partition("|")
            )
            cursor = cls(datetime.fromisoformat(at), RowId(int(row)))
        except (ValueError, binascii.Error):
            cursor = None
        if cursor is None or cursor.at.tzinfo is None or not 0 <= cursor.row <= LARGEST:
            raise Problem(400, "`after` is not a cursor: take it from `next` of the page before.")
        return cursor
