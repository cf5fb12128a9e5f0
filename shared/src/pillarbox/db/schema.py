"""The tables as SQLAlchemy Core sees them: for admin's queries and for Alembic's comparison.

What each table is for: `migrations/versions/r0001_tables.sql`. Hot statements are not built from this.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
    text,
)

metadata = MetaData()


def _int8(name: str, *, key: bool = False, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null, autoincrement=False)


def _text(name: str, *, key: bool = False, null: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=null)


def _lane(*, key: bool = False) -> Column[str]:
    return Column("lane", Text(collation="C"), primary_key=key, nullable=False)


def _bytes(name: str, *, key: bool = False, null: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, primary_key=key, nullable=null)


def _at(name: str, default: str | None = "now()", *, null: bool = False) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=null, server_default=text(default) if default else None
    )


def _number(name: str, default: str | None = None) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(default) if default else None)


def _identity(name: str) -> Column[int]:
    return Column(name, BigInteger, Identity(always=True), primary_key=True)


ticket = Sequence("lane_ticket", metadata=metadata)
token = Sequence("lease_token", metadata=metadata)

bots = Table(
    "bots",
    metadata,
    _int8("bot_id", key=True),
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    Column("failed_trimmed", BigInteger, nullable=False, server_default=text("0")),
    Column("malformed_trimmed", BigInteger, nullable=False, server_default=text("0")),
    _at("created_at"),
)

seen = Table(
    "seen",
    metadata,
    _int8("bot_id", key=True),
    _int8("update_id", key=True),
    _at("accepted_at"),
    _bytes("digest", key=True),
    Index("seen_accepted_at", "accepted_at"),
)

lanes = Table(
    "lanes",
    metadata,
    _int8("bot_id", key=True),
    Column("head", BigInteger, nullable=False, server_default=ticket.next_value()),
    _int8("token", null=True),
    _at("lease_until", None, null=True),
    _at("not_before", None, null=True),
    _number("pending"),
    _number("runs", "0"),
    _number("turns", "0"),
    _lane(key=True),
    _int8("uncounted", null=True),
    postgresql_with={"fillfactor": 50},
)
Index(
    "lanes_free",
    lanes.c.head,
    postgresql_where=text("token IS NULL AND not_before IS NULL AND runs < 2"),
)
Index(
    "lanes_suspect",
    lanes.c.head,
    postgresql_where=text("token IS NULL AND not_before IS NULL AND runs >= 2"),
)
Index(
    "lanes_later",
    lanes.c.not_before,
    postgresql_where=text("token IS NULL AND not_before IS NOT NULL"),
)
Index("lanes_leased", lanes.c.token, unique=True, postgresql_where=text("token IS NOT NULL"))

updates = Table(
    "updates",
    metadata,
    Column("row_id", BigInteger, Identity(always=True), primary_key=True),
    _int8("bot_id", key=True),
    _int8("update_id"),
    _int8("chat_id", null=True),
    _int8("user_id", null=True),
    _at("accepted_at"),
    _lane(key=True),
    _text("kind"),
    _bytes("body"),
    _number("retries", "0"),
    Column("sealed", Boolean, nullable=False, server_default=text("false")),
    Index("updates_update_id", "update_id", postgresql_using="hash"),
)

failed = Table(
    "failed",
    metadata,
    _int8("row_id", key=True),
    _int8("bot_id"),
    _int8("update_id"),
    _int8("chat_id", null=True),
    _int8("user_id", null=True),
    _at("accepted_at", None),
    _at("failed_at", "clock_timestamp()"),
    _number("runs"),
    _lane(),
    _text("kind"),
    _text("error"),
    _bytes("body"),
    Column("sealed", Boolean, nullable=False, server_default=text("false")),
    Index("failed_newest", "bot_id", "failed_at", "row_id"),
    Index("failed_update_id", "update_id"),
)

outbox = Table(
    "outbox",
    metadata,
    _int8("row_id", key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    _int8("bot_id"),
    _lane(),
    _bytes("body"),
    Index("outbox_lane", "bot_id", "lane", "row_id", "n"),
)

fsm = Table(
    "fsm",
    metadata,
    _int8("bot_id", key=True),
    Column("key", Text(collation="C"), primary_key=True),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    _at("updated_at"),
    _text("state", null=True),
    _bytes("data", null=True),
)

pins = Table(
    "pins",
    metadata,
    _int8("bot_id", key=True),
    _int8("user_id", key=True),
    _at("pinned_at"),
    _text("fingerprint"),
    _bytes("key", null=True),
)

malformed = Table(
    "malformed",
    metadata,
    _identity("id"),
    _int8("bot_id"),
    _at("received_at"),
    _text("reason"),
    _bytes("body"),
    Index("malformed_bot", "bot_id", "id"),
)

audit = Table(
    "audit",
    metadata,
    _identity("id"),
    _at("at"),
    _int8("bot_id", null=True),
    _int8("update_id", null=True),
    _int8("row_id", null=True),
    _text("by"),
    _text("action"),
    _int8("user_id", null=True),
    _text("old_fingerprint", null=True),
    _text("new_fingerprint", null=True),
    Index("audit_at", "at", "id"),
)

jobs = Table(
    "jobs",
    metadata,
    _identity("id"),
    _int8("bot_id", null=True),
    _at("created_at"),
    _at("finished_at", None, null=True),
    _text("by"),
    _text("action"),
    Column("params", Text, nullable=False, server_default=text("'{}'")),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    _text("result", null=True),
)
Index("jobs_waiting", jobs.c.id, postgresql_where=text("finished_at IS NULL"))
