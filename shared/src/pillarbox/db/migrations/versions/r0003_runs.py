"""FSM state in the turn, retries, runs given back while they go on. Code of before goes on working."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("ALTER TABLE lanes ADD COLUMN uncounted bigint")
    op.execute("ALTER TABLE updates ADD COLUMN retries integer NOT NULL DEFAULT 0")
    # Straight to the driver: no `:name` and no `%s` in it is a parameter.
    statements = (Path(__file__).parent / "r0003_runs.sql").read_text(encoding="utf-8")
    op.get_bind().connection.cursor().execute(statements)


def downgrade() -> None:
    op.execute("DROP FUNCTION inbox_run_turn, inbox_write_fsm, inbox_read_fsm")
    op.execute("DROP TYPE turn_row")
    op.execute("ALTER TABLE updates DROP COLUMN retries")
    op.execute("ALTER TABLE lanes DROP COLUMN uncounted")
