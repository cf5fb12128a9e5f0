"""Renews leases from the watchdog's thread."""

from collections.abc import Sequence

import psycopg

from pillarbox.errors import StorageUnavailable
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
            held = self._renew(tokens)
        except (psycopg.Error, OSError) as error:
            self.close()
            ours = translated(error) if isinstance(error, psycopg.Error) else error
            raise StorageUnavailable(f"leases were not renewed ({type(ours).__name__})") from error
        return frozenset(tokens) - held

    def _renew(self, tokens: Sequence[Token]) -> set[Token]:
        if self._link is None or self._link.closed:
            self._link = connect_blocking(self._url)
        cursor = self._link.execute(sql.RENEW.encode(), [Int8s(tokens), self._lease], prepare=True)
        return {Token(token) for (token,) in cursor.fetchall()}

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
