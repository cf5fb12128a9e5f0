"""Tokens that no restore repeats: looked at where they are given out, behind everything that waits."""

from pathlib import Path

from alembic import op

from pillarbox.db.migrations.editing import edit, run

revision = "0005"
down_revision = "0004"

FOLDER = Path(__file__).parent
ADVANCE = "    PERFORM inbox_advance_tokens();\n"
BEFORE = {"inbox_turn": "    IF _rescue THEN\n", "inbox_write_fsm": "    UPDATE fsm f SET "}
"""In front of which line each of the functions has it."""


def upgrade() -> None:
    run((FOLDER / "r0005_tokens.sql").read_text(encoding="utf-8"))
    for function, line in BEFORE.items():
        edit(function, line, ADVANCE + line)


def downgrade() -> None:
    for function, line in BEFORE.items():
        edit(function, ADVANCE + line, line)
    op.execute("DROP FUNCTION inbox_advance_tokens, inbox_set_tokens")
