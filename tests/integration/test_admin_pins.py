"""Pins, counts and whole updates over the API: who may, and what is answered."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pillarbox_admin import in_full
from tests.support.admin import BODY, BOT, OTHER, Admin, fail, rows, running_admin

PINS = f"/api/v1/bots/{BOT}/pins"
LIST = f"/api/v1/bots/{BOT}/failed-updates"
KEY, NEW = "A1" * 20, "B2" * 32


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


async def put(
    admin: Admin, path: str, body: object, holder: str = "operator"
) -> tuple[int, dict[str, object]]:
    async with admin.call("PUT", path, holder, json=body) as response:
        return response.status, await response.json(content_type=None)


async def test_a_pin_is_trusted_read_and_forgotten(admin: Admin, postgres_url: str) -> None:
    assert (await admin.get(f"{PINS}/42", status=404))["detail"] == "No key is pinned for this person."
    status, pin = await put(admin, f"{PINS}/42", {"fingerprint": KEY.lower()})
    assert (status, pin["user_id"], pin["fingerprint"]) == (200, 42, KEY)
    assert await admin.get(f"{PINS}/42") == pin
    await put(admin, f"{PINS}/42", {"fingerprint": NEW})
    async with admin.call("DELETE", f"{PINS}/42") as response:
        assert (response.status, (await response.json())["fingerprint"]) == (200, NEW)
    async with admin.call("DELETE", f"{PINS}/42") as response:
        assert response.status == 404
    assert rows(
        postgres_url, "SELECT by, action, user_id, old_fingerprint, new_fingerprint FROM audit ORDER BY id"
    ) == [
        ("operator", "trust", 42, None, KEY),
        ("operator", "trust", 42, KEY, NEW),
        ("operator", "forget", 42, NEW, None),
    ]


@pytest.mark.parametrize(
    "body", [{}, {"fingerprint": "abc"}, {"fingerprint": KEY, "key": "x"}, {"fingerprint": 1}]
)
async def test_what_is_no_fingerprint_is_refused(admin: Admin, body: object) -> None:
    status, problem = await put(admin, f"{PINS}/42", body)
    assert (status, problem["status"]) == (422, 422)


async def test_who_may(admin: Admin) -> None:
    assert (await put(admin, f"{PINS}/42", {"fingerprint": KEY}, "viewer"))[0] == 403
    async with admin.call("DELETE", f"{PINS}/42", "viewer") as response:
        assert response.status == 403
    await admin.get(f"{PINS}/42", "robot", status=403)
    await admin.get(f"{PINS}/42", None, status=401)
    await admin.get(f"{LIST}?payload=true", "viewer", status=403)
    await admin.get(f"/api/v1/bots/{BOT}", "robot", status=403)


async def test_the_counts_of_a_bot_that_is_known(admin: Admin, postgres_url: str) -> None:
    assert (await admin.get(f"/api/v1/bots/{BOT}"))[
        "failed"
    ] == 0  # an empty database knows no bot, and no better
    rows_before = {"bot_id": BOT, "pending": 0, "failed": 2, "failed_trimmed": 0}
    fail(postgres_url, 1)
    fail(postgres_url, 2)
    found = await admin.get(f"/api/v1/bots/{BOT}")
    assert {name: found[name] for name in rows_before} == rows_before


async def test_a_list_in_full_has_every_body_once_in_pages_of_a_bounded_size(
    admin: Admin, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_full, "SIZE", 2 * len(BODY))
    for number in range(5):
        fail(postgres_url, number, minutes=number)
    fail(postgres_url, 5, minutes=5, body=BODY * 9)
    fail(postgres_url, 6, bot_id=OTHER)
    found: list[dict[str, Any]] = []
    sizes: list[int] = []
    after = ""
    while not sizes or after:
        page = await admin.get(f"{LIST}?payload=true&after={after}", "insider")
        found += page["items"]
        sizes.append(len(page["items"]))
        after = page["next"]
    assert [item["update_id"] for item in found] == [0, 1, 2, 3, 4, 5]
    assert sizes == [2, 2, 1, 1]
    assert [base64.b64decode(item["payload_base64"]) for item in found] == [BODY] * 5 + [BODY * 9]
    assert (found[0]["payload"]["update_id"], found[5]["payload"]) == (9007199254740993, None)
