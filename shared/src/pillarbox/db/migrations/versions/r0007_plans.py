"""Plans that stay right when they were made for an inbox that was empty, and is not any more.

What autovacuum last saw of an idle inbox is no row. A plan for that may as well read `updates` from end to
end, or all that one bot has; so no index but the key offers itself, and what a turn has found it writes by
its place.
"""

from alembic import op

from pillarbox.db.migrations.editing import edit

revision = "0007"
down_revision = "0006"

FUNCTIONS = ("inbox_turn", "inbox_run_turn", "inbox_write_fsm", "inbox_read_fsm", "inbox_relay")
# Nobody else writes the first update of a lane that is locked: its place stays what it was.
EDITS = (
    ("inbox_turn", "SELECT f.row_id FROM updates f WHERE", "SELECT f.ctid FROM updates f WHERE"),
    (
        "inbox_turn",
        "u.bot_id = e.bot_id AND u.lane = e.lane AND u.row_id = front.row_id",
        "u.ctid = front.ctid",
    ),
    ("inbox_run_turn", "front.bot_id, front.lane, front.row_id", "front.ctid"),
    ("inbox_run_turn", "SELECT f.bot_id, f.lane, f.row_id FROM updates f", "SELECT f.ctid FROM updates f"),
    (
        "inbox_run_turn",
        "u.bot_id = a.bot_id AND u.lane = a.lane AND u.row_id = a.row_id",
        "u.ctid = a.ctid",
    ),
)


def upgrade() -> None:
    op.drop_index("updates_update_id", "updates")
    op.create_index("updates_update_id", "updates", ["update_id"], postgresql_using="hash")
    for function, old, new in EDITS:
        edit(function, old, new)
    for function in FUNCTIONS:
        op.execute(f"ALTER FUNCTION {function} SET enable_bitmapscan = off")


def downgrade() -> None:
    for function in FUNCTIONS:
        op.execute(f"ALTER FUNCTION {function} RESET enable_bitmapscan")
    for function, old, new in reversed(EDITS):
        edit(function, new, old)
    op.drop_index("updates_update_id", "updates")
    op.create_index("updates_update_id", "updates", ["bot_id", "update_id"])
