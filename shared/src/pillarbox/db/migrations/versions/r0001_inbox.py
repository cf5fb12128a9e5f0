"""The inbox: its tables, and the turn of a dispatcher."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

TABLES = (
    "outbox", "failed", "updates", "lanes", "seen", "malformed", "fsm", "pins", "jobs", "audit", "bots",
)  # fmt: skip


def upgrade() -> None:
    folder = Path(__file__).parent
    for name in ("r0001_tables.sql", "r0001_turn.sql"):
        # Straight to the driver: no `:name` and no `%s` in it is a parameter.
        op.get_bind().connection.cursor().execute((folder / name).read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute("DROP FUNCTION inbox_turn, inbox_trim_failed")
    op.execute("DROP TYPE lane_end")
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
    op.execute("DROP SEQUENCE lane_ticket, lease_token")
