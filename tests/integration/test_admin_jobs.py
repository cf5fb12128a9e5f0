"""More than a thousand failed updates at once: a job that is looked at, cut off, and asked for again."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.integration.test_admin_page import PAGE, act, page, sign_in
from tests.support.admin import BOT, Admin, rows, running_admin

LIST = f"/api/v1/bots/{BOT}/failed-updates"
MANY = 2600
FAILED = """
INSERT INTO failed (row_id, bot_id, update_id, accepted_at, runs, lane, kind, error, body)
SELECT n, %s, n, now(), 1, 'chat:' || n %% 50, 'message', 'KeyError: x', 'x' FROM generate_series(1, %s) n
"""
WAITS = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND query LIKE '%WITH picked%'
AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


@pytest.fixture
def many(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(FAILED, (BOT, MANY))


@contextmanager
def held(url: str, row: int) -> Iterator[None]:
    """Somebody's open transaction has locked this failed update."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1 FROM failed WHERE row_id = %s FOR UPDATE", (row,))
        yield
        connection.rollback()


def moved_and_left(url: str) -> tuple[int, int]:
    ((back, left),) = rows(url, "SELECT (SELECT count(*) FROM updates), (SELECT count(*) FROM failed)")
    return back, left


async def nothing_waits(url: str) -> None:
    """A batch that was cut off while it waited is done whole when the lock is free, or not at all."""
    async with asyncio.timeout(10):
        while rows(url, WAITS):  # noqa: ASYNC110 - the database's own state
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("verb", "back"), [("retry", MANY), ("discard", 0)])
async def test_a_job_goes_on_and_its_end_is_told(
    admin: Admin, postgres_url: str, verb: str, back: int
) -> None:
    async with admin.call("POST", f"{LIST}/{verb}", json={"filter": {"kind": "message"}}) as response:
        assert response.status == 202
        job, address = await response.json(), response.headers["Location"]
    assert (job["state"], job["act"], job["bot_id"], job["result"]) == ("running", verb, BOT, None)
    assert 1000 < job["moved"] <= MANY
    ended = await admin.get(f"{address}?wait=20", "robot")
    assert (ended["state"], ended["moved"], ended["problem"]) == ("done", MANY, None)
    assert ended["result"] == {"moved": MANY, "unknown": [], "running": []}
    assert moved_and_left(postgres_url) == (back, 0)
    assert rows(postgres_url, 'SELECT DISTINCT "by", action FROM audit') == [("operator", verb)]


async def test_up_to_a_thousand_are_answered_at_once(admin: Admin, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(FAILED, (BOT, 1000))
    found = await admin.post(f"{LIST}/retry", {"all": True})
    assert found == {"moved": 1000, "unknown": [], "running": []}


@pytest.mark.usefixtures("many")
async def test_a_job_that_cannot_go_on_says_so_and_the_rest_is_asked_for_again(
    admin: Admin, postgres_url: str
) -> None:
    with held(postgres_url, 1800):
        job = await admin.post(f"{LIST}/retry", {"all": True}, status=202)
        looked = await admin.get(f"/api/v1/jobs/{job['job']}?wait=0.2", "operator")
        assert (looked["state"], looked["moved"]) == ("running", 1500)
        ended = await admin.get(f"/api/v1/jobs/{job['job']}?wait=20", "operator")
    assert (ended["state"], ended["moved"], ended["result"]) == ("failed", 1500, None)
    assert "database" in ended["problem"]
    await nothing_waits(postgres_url)
    back, left = moved_and_left(postgres_url)
    assert (back + left, back % 500) == (MANY, 0)
    assert (await admin.post(f"{LIST}/retry", {"all": True}))["moved"] == left
    assert moved_and_left(postgres_url) == (MANY, 0)


@pytest.mark.usefixtures("many")
async def test_a_stop_ends_a_job_at_a_whole_batch(postgres_url: str, valkey_url: str) -> None:
    with held(postgres_url, 1800):
        async with running_admin(postgres_url, valkey_url) as admin:
            job = await admin.post(f"{LIST}/discard", {"all": True}, status=202)
    await nothing_waits(postgres_url)
    _, left = moved_and_left(postgres_url)
    assert (MANY - left) in (1500, 2000)
    async with running_admin(postgres_url, valkey_url) as admin:
        told = await admin.get(f"/api/v1/jobs/{job['job']}", "operator", 404)
        assert "ask again" in told["detail"]
        assert (await admin.post(f"{LIST}/discard", {"all": True}))["moved"] == left


@pytest.mark.usefixtures("many")
async def test_the_page_counts_up_while_a_job_goes_on(admin: Admin, postgres_url: str) -> None:
    await sign_in(admin)
    with held(postgres_url, 1800):
        status, location, _ = await act(admin, f"{PAGE}/retry", [("which", "all")])
        assert status == 303
        async with admin.call("GET", location, None) as response:
            assert re.search("1,500 given back .* More follow.", await response.text())
            assert response.headers["Refresh"] == "2"
    async with asyncio.timeout(10):
        while "More follow" in await page(admin, location):  # noqa: ASYNC110 - admin's own state
            await asyncio.sleep(0.1)
    async with admin.call("GET", location, None) as response:
        assert "2,600 given back to the bot, to be handled again.</p>" in await response.text()
        assert "Refresh" not in response.headers


@pytest.mark.parametrize(("holder", "status"), [("viewer", 403), ("robot", 404)])
async def test_who_may_act_may_look_at_a_job(admin: Admin, holder: str, status: int) -> None:
    await admin.get("/api/v1/jobs/none", holder, status)
