"""Which revision of the schema this version of the services speaks."""

from pillarbox.errors import SettingError

REVISION = "0001"


def check_revision(found: str | None) -> None:
    """Raises SettingError, with the fix, unless the database is of our revision."""
    if found == REVISION:
        return
    state = "has no schema of ours" if found is None else f"is at revision {found}"
    raise SettingError(
        f"DATABASE_URL: the database {state}, this version needs {REVISION}; run `pillarbox migrate`"
    )
