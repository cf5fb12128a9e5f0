"""The tables in the file, and how older files become newer ones. They are those of PostgreSQL, made small."""

import sqlite3

from pillarbox.errors import SettingError

# `numbers` gives rows, tickets and tokens; none of them is ever used twice.
# `lanes.row_id` is the update that is leased. `lease_until` is the machine's time since its start: a lease
# ends with the process that has the bot's lock. All other times are microseconds since 1970.
FIRST = (
    "CREATE TABLE numbers (last INTEGER NOT NULL)",
    "INSERT INTO numbers VALUES (0)",
    """CREATE TABLE bots (
        bot_id INTEGER PRIMARY KEY, paused INTEGER NOT NULL DEFAULT 0,
        failed_trimmed INTEGER NOT NULL DEFAULT 0, malformed_trimmed INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE seen (
        bot_id INTEGER NOT NULL, update_id INTEGER NOT NULL, digest BLOB NOT NULL,
        accepted_at INTEGER NOT NULL, PRIMARY KEY (bot_id, update_id, digest)
    ) WITHOUT ROWID""",
    "CREATE INDEX seen_accepted_at ON seen (accepted_at)",
    """CREATE TABLE lanes (
        bot_id INTEGER NOT NULL, lane TEXT NOT NULL, head INTEGER NOT NULL, token INTEGER, lease_until REAL,
        row_id INTEGER, not_before INTEGER, runs INTEGER NOT NULL DEFAULT 0, turns INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (bot_id, lane)
    ) WITHOUT ROWID""",
    """CREATE INDEX lanes_free ON lanes (bot_id, head)
        WHERE token IS NULL AND not_before IS NULL AND runs < 2""",
    """CREATE INDEX lanes_suspect ON lanes (bot_id, head)
        WHERE token IS NULL AND not_before IS NULL AND runs >= 2""",
    "CREATE INDEX lanes_later ON lanes (not_before) WHERE token IS NULL AND not_before IS NOT NULL",
    "CREATE UNIQUE INDEX lanes_leased ON lanes (token) WHERE token IS NOT NULL",
    """CREATE TABLE updates (
        row_id INTEGER PRIMARY KEY, bot_id INTEGER NOT NULL, lane TEXT NOT NULL, update_id INTEGER NOT NULL,
        kind TEXT NOT NULL, chat_id INTEGER, user_id INTEGER, accepted_at INTEGER NOT NULL, body BLOB NOT NULL
    )""",
    "CREATE INDEX updates_lane ON updates (bot_id, lane, row_id)",
    "CREATE INDEX updates_update_id ON updates (bot_id, update_id)",
    """CREATE TABLE failed (
        row_id INTEGER PRIMARY KEY, bot_id INTEGER NOT NULL, lane TEXT NOT NULL, update_id INTEGER NOT NULL,
        kind TEXT NOT NULL, chat_id INTEGER, user_id INTEGER, accepted_at INTEGER NOT NULL,
        failed_at INTEGER NOT NULL, runs INTEGER NOT NULL, error TEXT NOT NULL, body BLOB NOT NULL
    )""",
    "CREATE INDEX failed_newest ON failed (bot_id, failed_at, row_id)",
    "CREATE INDEX failed_update_id ON failed (bot_id, update_id)",
    """CREATE TABLE outbox (
        row_id INTEGER NOT NULL, n INTEGER NOT NULL, bot_id INTEGER NOT NULL, lane TEXT NOT NULL,
        body BLOB NOT NULL, PRIMARY KEY (bot_id, row_id, n)
    ) WITHOUT ROWID""",
    """CREATE TABLE fsm (
        bot_id INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 1,
        updated_at INTEGER NOT NULL, state TEXT, data BLOB, PRIMARY KEY (bot_id, key)
    ) WITHOUT ROWID""",
    """CREATE TABLE pins (
        bot_id INTEGER NOT NULL, user_id INTEGER NOT NULL, pinned_at INTEGER NOT NULL,
        fingerprint TEXT NOT NULL, key BLOB NOT NULL, PRIMARY KEY (bot_id, user_id)
    ) WITHOUT ROWID""",
    """CREATE TABLE malformed (
        id INTEGER PRIMARY KEY, bot_id INTEGER NOT NULL, received_at INTEGER NOT NULL, reason TEXT NOT NULL,
        body BLOB NOT NULL
    )""",
    "CREATE INDEX malformed_bot ON malformed (bot_id, id)",
    """CREATE TABLE audit (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, bot_id INTEGER, update_id INTEGER, row_id INTEGER,
        by TEXT NOT NULL, action TEXT NOT NULL
    )""",
    "CREATE INDEX audit_bot ON audit (bot_id, id)",
)
# A key that somebody trusts may be known by its fingerprint alone; nothing has written pins before.
SECOND = (
    "DROP TABLE pins",
    """CREATE TABLE pins (
        bot_id INTEGER NOT NULL, user_id INTEGER NOT NULL, pinned_at INTEGER NOT NULL,
        fingerprint TEXT NOT NULL, key BLOB, PRIMARY KEY (bot_id, user_id)
    ) WITHOUT ROWID""",
    "ALTER TABLE audit ADD COLUMN user_id INTEGER",
    "ALTER TABLE audit ADD COLUMN old_fingerprint TEXT",
    "ALTER TABLE audit ADD COLUMN new_fingerprint TEXT",
)
# `uncounted` is the token of the lease whose run was given back while it goes on.
THIRD = (
    "ALTER TABLE lanes ADD COLUMN uncounted INTEGER",
    "ALTER TABLE updates ADD COLUMN retries INTEGER NOT NULL DEFAULT 0",
)
FOURTH = (
    "ALTER TABLE updates ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE failed ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0",
)
# `seen` knows the row of its update: an index of the updates by their ids cost each of them a page at random.
FIFTH = (
    "ALTER TABLE seen ADD COLUMN row_id INTEGER",
    """UPDATE seen SET row_id = coalesce(
        (SELECT max(u.row_id) FROM updates u WHERE u.bot_id = seen.bot_id AND u.update_id = seen.update_id),
        (SELECT max(f.row_id) FROM failed f WHERE f.bot_id = seen.bot_id AND f.update_id = seen.update_id)
    )""",
    "DROP INDEX updates_update_id",
)
VERSIONS = (FIRST, SECOND, THIRD, FOURTH, FIFTH)
"""What makes a file of version n - 1 one of version n; what was released is never changed again."""


def check(db: sqlite3.Connection) -> None:
    """SettingError unless the file is of exactly our version."""
    if _version(db) < len(VERSIONS):
        raise SettingError(
            f"DATABASE_URL: the file has no inbox of version {len(VERSIONS)} in it; "
            "start `pillarbox run` of this version on it first"
        )


def _version(db: sqlite3.Connection) -> int:
    """SettingError: a file of a newer version, or of something else."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(VERSIONS):
        raise SettingError(
            f"DATABASE_URL: the file is of version {version}, this program knows {len(VERSIONS)}; update it"
        )
    if version == 0 and db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise SettingError("DATABASE_URL: the file is a database of another program; name a file of its own")
    return version


def upgrade(db: sqlite3.Connection) -> None:
    """In the caller's transaction. SettingError: a file of a newer version, or of something else."""
    version = _version(db)
    for number, statements in enumerate(VERSIONS[version:], version + 1):
        for statement in statements:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {number}")
