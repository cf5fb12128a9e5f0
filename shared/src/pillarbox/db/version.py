"""Which revision of the schema this version of the services speaks."""

import psycopg

from pillarbox.errors import SettingError

REVISION = "0008"


def check_revision(found: str | None) -> None:
    """Raises SettingError, with the fix, unless the database is of our revision."""
    if found == REVISION:
        return
    if found is not None and found > REVISION:
        raise SettingError(
            f"DATABASE_URL: the database is at revision {found}, newer than this version ({REVISION});"
            " start the version that migrated it"
        )
    state = "has no schema of ours" if found is None else f"is at revision {found}"
    raise SettingError(
        f"DATABASE_URL: the database {state}, this version needs {REVISION}; run `pillarbox migrate`"
    )


def is_current(url: str) -> bool:
    """Whether the database has our revision; False too where it cannot be asked, which `migrate` explains."""
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.Error:
        return False
    return found == (REVISION,)
