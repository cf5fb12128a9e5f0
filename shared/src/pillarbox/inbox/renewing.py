"""Renews leases from the watchdog's thread."""

from collections.abc import Sequence

import psycopg

from pillarbox.errors import LeasesLocked, StorageUnavailable
from pillarbox.ids import Token
from pillarbox.inbox import sql
from pillarbox.inbox.arrays import Int8s
from pillarbox.inbox.connections import Link, connect_blocking, translated


class PostgresRenewer:
    """A blocking connection of its own, to PostgreSQL itself: a full pooler must not cost the leases.

    After an error the next call makes a new one.
    """

    def __init__(self, url: str, lease: float) -> None:
        self._url = url
        self._lease = lease
        self._link: Link | None = None

    def renew(self, tokens: Sequence[Token]) -> frozenset[Token]:
        if not tokens:
            return frozenset()
        try:
            found = self._renew(tokens)
        except (psycopg.Error, OSError) as error:
            self.close()
            ours = translated(error) if isinstance(error, psycopg.Error) else error
            raise StorageUnavailable(f"leases were not renewed ({type(ours).__name__})") from error
        lost = frozenset(tokens) - found.keys()
        if locked := frozenset(token for token, renewed in found.items() if not renewed):
            raise LeasesLocked(locked, lost)
        return lost

    def _renew(self, tokens: Sequence[Token]) -> dict[Token, bool]:
        """One lane that somebody else has locked for long must not cost the others their leases."""
        if self._link is None or self._link.closed:
            self._link = connect_blocking(self._url)
            self._link.execute(sql.RENEW_SETTINGS.encode())
        given = [Int8s(tokens), self._lease]
        try:
            cursor = self._link.execute(sql.RENEW.encode(), given, prepare=True)
        except psycopg.errors.LockNotAvailable:
            cursor = self._link.execute(sql.RENEW_UNLOCKED.encode(), given, prepare=True)
        return {Token(token): renewed for token, renewed in cursor.fetchall()}

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
