"""What the blocking client speaks through. No `await` in here ever gives up control."""

import sqlite3
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from pillarbox.client.rest import AWAY, TIMEOUT, Answer, headers
from pillarbox.errors import SettingError, StorageUnavailable
from pillarbox.inbox.asking import Row
from pillarbox.inbox.connections import Link, connect_blocking, spoken_to
from pillarbox.inbox.connections import translated as postgres_translated
from pillarbox.inbox.sqlite.connection import attach, transaction, translated
from pillarbox.inbox.sqlite.driver import T, Work


class BlockingTransport:
    """A connection a call: nothing grows stale, nothing is shared."""

    def __init__(self, url: str, token: str) -> None:
        self._headers = headers(token)
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            self._host = ""
        if not self._host:
            raise SettingError("this is no address of admin; give it as http://host:8083")
        self._secure, self._prefix = parts.scheme.lower() == "https", parts.path

    async def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=TIMEOUT)
        try:
            connection.request(method, self._prefix + path, body, self._headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        except (OSError, HTTPException) as error:
            raise StorageUnavailable(AWAY) from error
        finally:
            connection.close()

    async def close(self) -> None: ...


class BlockingLink:
    """One connection to PostgreSQL; a broken one is made anew by the next call."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._link: Link | None = None

    async def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        try:
            cursor = self._connected().execute(query.encode(), parameters, prepare=False, binary=True)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise postgres_translated(error) from error

    def _connected(self) -> Link:
        if self._link is None or self._link.closed or spoken_to(self._link):
            self._finish()
            self._link = connect_blocking(self._url)
        return self._link

    def _finish(self) -> None:
        if self._link is not None:
            self._link.pgconn.finish()
            self._link = None

    async def close(self) -> None:
        self._finish()


class BlockingFile:
    """A SQLite file, beside the process that handles the bots."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    async def start(self) -> None:
        self._db = attach(self._path, any_thread=True)

    async def stop(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    async def call(self, work: Work[T]) -> T:
        if self._db is None:
            raise StorageUnavailable("the database is not open")
        try:
            with transaction(self._db):
                return work(self._db)
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise translated(error) from error
