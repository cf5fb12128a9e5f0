"""The schema of the inbox, and its migrations. `pillarbox.db.schema` and Alembic load only when used."""

from pillarbox.db.version import REVISION, check_revision, is_current

__all__ = ["REVISION", "check_revision", "is_current", "migrate"]


def migrate(url: str) -> None:
    """Brings the database at `url` to this version's schema; several starters at once do it one by one.

    Raises StorageUnavailable when it cannot be reached or is too busy, SettingError when it is newer than us.
    """
    if is_current(url):  # the usual start, which need not wait for Alembic to load
        return
    from pillarbox.db.upgrade import upgrade

    upgrade(url)
