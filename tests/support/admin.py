"""Admin as a running service, and failed updates to show in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from aiohttp import ClientResponse, ClientSession, CookieJar

from pillarbox.settings import load
from pillarbox_admin.app import main
from pillarbox_admin.settings import AdminSettings
from pillarbox_solo.ports import free_port

BOT, OTHER = 700_001, 700_002
LATEST = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOKENS = {
    "viewer": ("read", "viewer-token-of-tests"),
    "operator": ("read+act", "operator-token-of-tests"),
    "insider": ("read+payload", "insider-token-of-tests"),
    "robot": ("act", "robot-token-of-the-tests"),
    "master": ("read+act+payload", "master-token-of-the-tests"),
}
BODY = b'{"update_id": 9007199254740993, "message":  {"text": "h\\ud800i", "n": 1.50}}'


@dataclass(slots=True)
class Admin:
    url: str
    http: ClientSession

    def call(
        self, method: str, path: str, holder: str | None = "operator", **more: Any
    ) -> AbstractAsyncContextManager[ClientResponse]:
        headers = {"Authorization": f"Bearer {TOKENS[holder][1]}"} if holder else {}
        return self.http.request(
            method, self.url + path, headers=headers | more.pop("headers", {}), allow_redirects=False, **more
        )

    async def get(self, path: str, holder: str | None = "viewer", status: int = 200) -> Any:
        async with self.call("GET", path, holder) as response:
            return await _body(response, status)

    async def post(self, path: str, body: object, holder: str | None = "operator", status: int = 200) -> Any:
        async with self.call("POST", path, holder, json=body) as response:
            return await _body(response, status)


async def _body(response: ClientResponse, status: int) -> Any:
    assert response.status == status, await response.text()
    kind = "application/problem+json" if status >= 400 else "application/json"
    assert response.content_type == kind
    return await response.json(content_type=None)


@asynccontextmanager
async def running_admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    port = free_port()
    tokens = "\n".join(f"{name}:{rights}:{token}" for name, (rights, token) in TOKENS.items())
    settings = load(
        AdminSettings,
        database_url=postgres_url,
        redis_url=valkey_url,
        redis_timeout=2,
        admin_host="127.0.0.1",
        admin_port=port,
        admin_tokens=tokens,
    )
    stop = asyncio.Event()
    jar = CookieJar(unsafe=True)  # takes cookies of an address without a name
    async with asyncio.TaskGroup() as tasks, ClientSession(cookie_jar=jar) as http:
        tasks.create_task(main(settings, stop))
        admin = Admin(f"http://127.0.0.1:{port}", http)
        try:
            await _alive(admin)
            yield admin
        finally:
            stop.set()


async def _alive(admin: Admin) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                async with admin.http.get(f"{admin.url}/healthz"):
                    return
            except OSError:
                await asyncio.sleep(0.02)


def fail(
    postgres_url: str,
    update_id: int,
    *,
    bot_id: int = BOT,
    row: int | None = None,
    minutes: float = 0,
    error: str = "KeyError: 'city' at bot.py:31",
    kind: str = "message",
    chat_id: int | None = 42,
    body: bytes = BODY,
) -> None:
    """An update that failed `minutes` before LATEST, as the storage keeps it."""
    at = LATEST - timedelta(minutes=minutes)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO failed (row_id, bot_id, update_id, chat_id, user_id, accepted_at, failed_at, runs,"
            " lane, kind, error, body) VALUES (%s, %s, %s, %s, 7, %s, %s, 1, %s, %s, %s, %s)",
            (row or update_id, bot_id, update_id, chat_id, at, at, f"chat:{chat_id}", kind, error, body),
        )


def malform(postgres_url: str, body: bytes) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO malformed (bot_id, reason, body) VALUES (%s, 'json', %s)", (BOT, body)
        )


def rows(postgres_url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(postgres_url) as connection:
        return connection.execute(query).fetchall()
