"""Numbers that no restore repeats, waits for locks that end, a relay that takes its rows by size too."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"

FOLDER = Path(__file__).parent


def upgrade() -> None:
    # Straight to the driver: no `:name` and no `%s` in it is a parameter.
    cursor = op.get_bind().connection.cursor()
    cursor.execute((FOLDER / "r0004_numbers.sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute("ALTER FUNCTION inbox_turn RESET lock_timeout")
    op.execute("ALTER FUNCTION inbox_run_turn RESET lock_timeout")
    op.execute("DROP FUNCTION inbox_relay(integer, bigint)")
    op.execute("DROP FUNCTION inbox_advance()")
