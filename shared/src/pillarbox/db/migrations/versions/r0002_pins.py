"""Pins by fingerprint alone, and an audit that knows whose key changed. Code of before goes on working."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("ALTER TABLE pins ALTER COLUMN key DROP NOT NULL")
    op.execute(
        "ALTER TABLE audit ADD COLUMN user_id bigint, ADD COLUMN old_fingerprint text,"
        " ADD COLUMN new_fingerprint text"
    )


def downgrade() -> None:
    op.execute("DELETE FROM pins WHERE key IS NULL")
    op.execute("ALTER TABLE pins ALTER COLUMN key SET NOT NULL")
    op.execute(
        "ALTER TABLE audit DROP COLUMN user_id, DROP COLUMN old_fingerprint, DROP COLUMN new_fingerprint"
    )
