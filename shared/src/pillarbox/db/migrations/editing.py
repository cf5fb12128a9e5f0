"""Small changes of a function that is large: all else in it stays as it is."""

from alembic import op
from sqlalchemy import text


def edit(function: str, old: str, new: str) -> None:
    query = text("SELECT pg_get_functiondef(to_regproc(:function)::oid)")
    before, found, after = op.get_bind().execute(query, {"function": function}).scalar_one().partition(old)
    if not found or old in after:
        raise RuntimeError(f"{function} is not as it was when this was written")
    run(before + new + after)


def run(statements: str) -> None:
    """Straight to the driver: no `:name` and no `%s` in it is a parameter."""
    op.get_bind().connection.cursor().execute(statements)
