"""A filter's parameters, and what SQLite needs to know an error's type."""

import json
import sqlite3
from typing import Any

from pillarbox.inbox.filtering import Filter
from pillarbox.inbox.kept import error_type, kept_error
from pillarbox.inbox.sqlite.times import of


def define(db: sqlite3.Connection) -> None:
    db.create_function("error_type", 1, error_type, deterministic=True)
    db.create_function(
        "kept", 2, lambda error, sealed: kept_error(error, sealed=bool(sealed)), deterministic=True
    )


def columns(matching: Filter | None) -> list[Any]:
    """Of MATCHING, and of CHOSEN after it, in their order."""
    given = matching or Filter()
    times = [None if at is None else of(at) for at in (given.since, given.until)]
    ids = None if given.update_ids is None else json.dumps(given.update_ids)
    return [*times, given.kind, given.chat_id, given.error, ids]
