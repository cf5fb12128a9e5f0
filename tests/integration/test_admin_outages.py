"""Admin while PostgreSQL or Redis is away: it stays up, says which, and goes on by itself."""

import asyncio
from pathlib import Path
from typing import Any

from pillarbox import db
from pillarbox_solo.postgres import PostgresServer
from tests.support.admin import BOT, TOKENS, Admin, fail, running_admin
from tests.support.servers import postgres_programs, running

LIST = f"/api/v1/bots/{BOT}/failed-updates"


async def readiness(admin: Admin) -> Any:
    async with admin.http.get(f"{admin.url}/readyz") as response:
        assert (await response.json())["ready"] == (response.status == 200)
        return (await response.json())["failing"]


async def until_ready(admin: Admin) -> None:
    async with asyncio.timeout(15):
        while await readiness(admin):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)


async def assert_away(admin: Admin) -> None:
    for method, path in (("GET", LIST), ("GET", "/api/v1/bots"), ("POST", f"{LIST}/retry")):
        async with admin.call(method, path, json={"all": True}) as response:
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
            assert response.content_type == "application/problem+json"
            assert "database" in (await response.json(content_type=None))["detail"]


async def test_postgres_goes_away_and_returns(tmp_path: Path, valkey_url: str) -> None:
    server = PostgresServer(tmp_path / "postgres", programs=postgres_programs())
    with running(server):
        url = server.database("postgres")
        db.migrate(url)
        fail(url, 1)
        async with running_admin(url, valkey_url) as admin:
            await until_ready(admin)
            assert len((await admin.get(LIST))["items"]) == 1
            server.kill()
            await assert_away(admin)
            assert set(await readiness(admin)) == {"database"}
            async with admin.http.get(f"{admin.url}/healthz") as response:
                assert response.status == 200
            server.start()
            await until_ready(admin)
            assert (await admin.post(f"{LIST}/retry", {"update_ids": [1]}))["moved"] == 1


async def test_postgres_is_away_at_the_start(tmp_path: Path, valkey_url: str) -> None:
    server = PostgresServer(tmp_path / "postgres", programs=postgres_programs())
    with running(server):
        db.migrate(server.database("postgres"))
        server.stop()
        async with running_admin(server.database("postgres"), valkey_url) as admin:
            await assert_away(admin)
            form = {"token": TOKENS["operator"][1]}
            headers = {"Sec-Fetch-Site": "same-origin"}
            async with admin.call("POST", "/login", None, data=form, headers=headers) as response:
                assert response.status == 303
            async with admin.call("GET", f"/bots/{BOT}", None) as response:
                assert response.status == 503
                text = await response.text()
                assert "The database is away" in text
                assert f'href="/bots/{BOT}"' in text
            server.start()
            await until_ready(admin)
            fail(server.database("postgres"), 1)
            assert (await admin.post(f"{LIST}/discard", {"all": True}))["moved"] == 1
