"""A filter's parameters, and what SQLite needs to know an error's type."""

import sqlite3
from typing import Any

from pillarbox.inbox.filtering import Filter, error_type
from pillarbox.inbox.sqlite.times import of


def define(db: sqlite3.Connection) -> None:
    db.create_function("error_type", 1, error_type, deterministic=True)


def columns(matching: Filter | None) -> list[Any]:
    """Of MATCHING, in its order."""
    given = matching or Filter()
    times = [None if at is None else of(at) for at in (given.since, given.until)]
    return [*times, given.kind, given.chat_id, given.error]
