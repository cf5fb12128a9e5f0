"""Sealed updates: of what goes wrong with one, no message is kept. Code of before goes on working."""

from alembic import op

from pillarbox.db.migrations.editing import edit, run

revision = "0006"
down_revision = "0005"

# The type and the place, as `pillarbox.inbox.kept` has them.
WITHOUT_MESSAGE = r"""
CREATE FUNCTION inbox_without_message(_error text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(substring(_error, '^([A-Za-z_][A-Za-z0-9_.]*)(?=:| at |$)'), 'Error')
    || coalesce(substring(_error, '( at [^ /]{1,200}\.py:[0-9]{1,9})$'), '');
"""
EDITS = (
    ("u.lane, u.kind,\n", "u.lane, u.kind, u.sealed,\n"),
    ("runs, lane, kind, error, body)", "runs, lane, kind, sealed, error, body)"),
    (
        "g.error, g.body\n",
        "g.sealed, CASE WHEN g.sealed THEN inbox_without_message(g.error) ELSE g.error END, g.body\n",
    ),
)


def upgrade() -> None:
    for table in ("updates", "failed"):
        op.execute(f"ALTER TABLE {table} ADD COLUMN sealed boolean NOT NULL DEFAULT false")
    run(WITHOUT_MESSAGE)
    for old, new in EDITS:
        edit("inbox_turn", old, new)


def downgrade() -> None:
    for old, new in EDITS:
        edit("inbox_turn", new, old)
    op.execute("DROP FUNCTION inbox_without_message")
    for table in ("updates", "failed"):
        op.execute(f"ALTER TABLE {table} DROP COLUMN sealed")
