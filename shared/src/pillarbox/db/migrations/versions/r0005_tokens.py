"""Tokens that no restore repeats: looked at where they are given out, behind everything that waits."""

from pathlib import Path

from alembic import op
from sqlalchemy import text

revision = "0005"
down_revision = "0004"

FOLDER = Path(__file__).parent
ADVANCE = "    PERFORM inbox_advance_tokens();\n"
BEFORE = {"inbox_turn": "    IF _rescue THEN\n", "inbox_write_fsm": "    UPDATE fsm f SET "}
"""In front of which line each of the functions has it; all else in them stays as it is."""


def upgrade() -> None:
    _run((FOLDER / "r0005_tokens.sql").read_text(encoding="utf-8"))
    for function, line in BEFORE.items():
        _edit(function, line, ADVANCE + line)


def downgrade() -> None:
    for function, line in BEFORE.items():
        _edit(function, ADVANCE + line, line)
    op.execute("DROP FUNCTION inbox_advance_tokens, inbox_set_tokens")


def _edit(function: str, old: str, new: str) -> None:
    query = text("SELECT pg_get_functiondef(to_regproc(:function)::oid)")
    before, found, after = op.get_bind().execute(query, {"function": function}).scalar_one().partition(old)
    if not found or old in after:
        raise RuntimeError(f"{function} is not as it was when this was written")
    _run(before + new + after)


def _run(statements: str) -> None:
    # Straight to the driver: no `:name` and no `%s` in it is a parameter.
    op.get_bind().connection.cursor().execute(statements)
