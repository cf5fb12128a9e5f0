"""The API over real HTTP and PostgreSQL: what is listed, what moves, and who may."""

import base64
from collections.abc import AsyncIterator

import psycopg
import pytest

from tests.support.admin import BODY, BOT, OTHER, Admin, fail, malform, rows, running_admin

LIST = f"/api/v1/bots/{BOT}/failed-updates"


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


@pytest.fixture
def five(postgres_url: str) -> None:
    """Five of one bot, the newest first, and one of another."""
    fail(postgres_url, 1)
    fail(postgres_url, 2, minutes=1, error="ValueError at bot.py:9", kind="callback_query")
    fail(postgres_url, 3, minutes=2, chat_id=None)
    fail(postgres_url, 4, minutes=2, error="KeyErrorLike: x at bot.py:3", chat_id=-(10**12))
    fail(postgres_url, 5, minutes=60, error="ran 5 times without an end")
    fail(postgres_url, 6, bot_id=OTHER)


async def test_a_failed_update_is_listed_with_these_fields(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 2**63 - 1, row=5, chat_id=-(2**63))
    assert await admin.get(LIST, "insider") == {
        "items": [
            {
                "update_id": 2**63 - 1,
                "row": 5,
                "chat_id": -(2**63),
                "kind": "message",
                "failed_at": "2026-03-01T12:00:00Z",
                "runs": 1,
                "error": "KeyError: 'city' at bot.py:31",
            }
        ],
        "next": None,
    }


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("KeyError: 'their words' at bot.py:31", "KeyError at bot.py:31"),
        ("ValueError: meet me at their:words at bot.py:5", "ValueError at bot.py:5"),
        ("KeyError: see you at their-words", "KeyError"),
        ("Outer.<locals>.Own: their words\nand more at bot.py:1", "Outer.<locals>.Own at bot.py:1"),
        ("NoEnd: 5 runs had no end", "NoEnd"),
    ],
)
async def test_what_people_wrote_is_in_no_error_for_who_may_only_read(
    admin: Admin, postgres_url: str, error: str, shown: str
) -> None:
    fail(postgres_url, 1, error=error)
    (item,) = (await admin.get(LIST, "viewer"))["items"]
    assert item["error"] == shown
    (item,) = (await admin.get(LIST, "insider"))["items"]
    assert item["error"] == error


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [1, 2, 4, 3, 5]),
        ("?kind=callback_query", [2]),
        ("?chat_id=42", [1, 2, 5]),
        ("?chat_id=-1000000000000", [4]),
        ("?error=KeyError", [1, 3]),
        ("?error=ValueError", [2]),
        ("?error=ran%205%20times%20without%20an%20end", [5]),
        ("?from=2026-03-01T11:58:30Z", [1, 2]),
        ("?to=2026-03-01T11:58:00Z", [5]),
        ("?from=2026-03-01T12:58:00%2B01:00&to=2026-03-01T12:00:00Z&error=KeyError", [3]),
        ("?error=Nothing", []),
    ],
)
async def test_the_filters(admin: Admin, query: str, found: list[int]) -> None:
    assert [item["update_id"] for item in (await admin.get(LIST + query))["items"]] == found


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("limit", [1, 2, 4, 5])
async def test_pages_hold_every_update_once(admin: Admin, limit: int) -> None:
    found, after, pages = [], "", 0
    while pages == 0 or after:
        page = await admin.get(f"{LIST}?limit={limit}&after={after}")
        assert len(page["items"]) <= limit
        found += [item["update_id"] for item in page["items"]]
        after, pages = page["next"], pages + 1
    assert found == [1, 2, 4, 3, 5]
    assert pages == -(-5 // limit)


async def test_new_failures_do_not_shift_the_next_page(admin: Admin, postgres_url: str) -> None:
    for update_id in (1, 2):
        fail(postgres_url, update_id, minutes=update_id)
    page = await admin.get(f"{LIST}?limit=1")
    fail(postgres_url, 3)
    after = await admin.get(f"{LIST}?limit=1&after={page['next']}")
    assert [item["update_id"] for item in after["items"]] == [2]


async def test_the_payload_is_what_telegram_sent(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1)
    async with admin.call("GET", f"{LIST}/1", "insider") as response:
        text = await response.read()
        found = await response.json()
    assert b'"payload":' + BODY in text
    assert base64.b64decode(found["payload_base64"]) == BODY
    assert (found["lane"], found["user_id"]) == ("chat:42", 7)


@pytest.mark.parametrize("body", [b"\xff\x00", b"NaN", b"[" * 100_000, b"{", b""])
async def test_a_payload_that_is_no_json_is_null_and_whole_in_base64(
    admin: Admin, postgres_url: str, body: bytes
) -> None:
    fail(postgres_url, 1, body=body)
    found = await admin.get(f"{LIST}/1", "insider")
    assert found["payload"] is None
    assert base64.b64decode(found["payload_base64"]) == body


async def test_of_one_id_failed_twice_the_newest_or_the_named_row(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1, row=10, minutes=5, body=b'"old"')
    fail(postgres_url, 1, row=11, body=b'"new"')
    assert (await admin.get(f"{LIST}/1", "insider"))["payload"] == "new"
    assert (await admin.get(f"{LIST}/1?row=10", "insider"))["payload"] == "old"


@pytest.mark.usefixtures("five")
async def test_retry_makes_them_pending_again(admin: Admin, postgres_url: str) -> None:
    assert await admin.post(f"{LIST}/retry", {"update_ids": [1, 3, 99]}) == {
        "moved": 2,
        "unknown": [99],
        "running": [],
    }
    assert rows(postgres_url, "SELECT update_id, body FROM updates ORDER BY 1") == [(1, BODY), (3, BODY)]
    assert rows(postgres_url, "SELECT sum(pending), sum(runs) FROM lanes") == [(2, 0)]
    assert [item["update_id"] for item in (await admin.get(LIST))["items"]] == [2, 4, 5]
    assert rows(postgres_url, 'SELECT update_id, "by", action FROM audit ORDER BY 1') == [
        (1, "operator", "retry"),
        (3, "operator", "retry"),
    ]


async def test_what_waits_already_is_running(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1)
    await admin.post(f"{LIST}/retry", {"update_ids": [1]})
    again = await admin.post(f"{LIST}/retry", {"update_ids": [1]})
    assert again == {"moved": 0, "unknown": [], "running": [1]}


@pytest.mark.usefixtures("five")
async def test_discard_forgets_them_and_the_audit_keeps_who(admin: Admin, postgres_url: str) -> None:
    found = await admin.post(f"{LIST}/discard", {"update_ids": [2]}, "robot")
    assert found == {"moved": 1, "unknown": [], "running": []}
    assert rows(postgres_url, 'SELECT bot_id, update_id, "by", action FROM audit') == [
        (BOT, 2, "robot", "discard")
    ]
    assert rows(postgres_url, "SELECT count(*) FROM updates") == [(0,)]


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("act", ["retry", "discard"])
async def test_all_and_a_filter_stay_with_their_bot(admin: Admin, postgres_url: str, act: str) -> None:
    await admin.post(f"{LIST}/{act}", {"update_ids": [6]})
    assert (await admin.post(f"{LIST}/{act}", {"filter": {"error": "KeyError", "chat_id": 42}}))["moved"] == 1
    assert (await admin.post(f"{LIST}/{act}", {"filter": {"error": "KeyError", "chat_id": 42}}))["moved"] == 0
    assert (await admin.post(f"{LIST}/{act}", {"all": True}))["moved"] == 4
    assert rows(postgres_url, "SELECT bot_id, update_id FROM failed") == [(OTHER, 6)]


@pytest.mark.usefixtures("five")
async def test_no_bot_shows_what_is_another_ones(admin: Admin) -> None:
    other = await admin.get(f"/api/v1/bots/{OTHER}/failed-updates")
    assert [item["update_id"] for item in other["items"]] == [6]
    await admin.get(f"{LIST}/6", "insider", 404)


@pytest.mark.usefixtures("five")
async def test_bots_with_their_depths(admin: Admin) -> None:
    await admin.post(f"{LIST}/retry", {"update_ids": [1, 3]})
    first, second = (await admin.get("/api/v1/bots"))["items"]
    assert first.pop("oldest_waiting") is not None
    assert first == {
        "bot_id": BOT,
        "waiting": 2,
        "running": 0,
        "failed": 3,
        "newest_failed": "2026-03-01T11:59:00Z",
    }
    assert (second["bot_id"], second["failed"], second["oldest_waiting"]) == (OTHER, 1, None)


async def test_malformed_bodies_are_listed_without_what_they_say(admin: Admin, postgres_url: str) -> None:
    for number in range(3):
        malform(postgres_url, b"secret-%d" % number)
    page = await admin.get("/api/v1/malformed?limit=2")
    rest = await admin.get(f"/api/v1/malformed?limit=2&after={page['next']}")
    assert [item["row"] for item in page["items"] + rest["items"]] == [3, 2, 1]
    assert page["items"][0]["size"] == 8
    assert "secret" not in str(page)


READ, ACT = ["viewer", "operator", "insider"], ["operator", "robot"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/v1/bots", READ),
        ("GET", LIST, READ),
        ("GET", "/api/v1/malformed", READ),
        ("GET", "/api/v1/outbound", READ),
        ("GET", "/api/v1/outbound/dead", READ),
        ("GET", f"{LIST}/1", ["insider"]),
        ("POST", f"{LIST}/retry", ACT),
        ("POST", f"{LIST}/discard", ACT),
    ],
)
async def test_the_rights(
    admin: Admin, postgres_url: str, method: str, path: str, allowed: list[str]
) -> None:
    fail(postgres_url, 1)
    for holder in ("viewer", "operator", "insider", "robot"):
        async with admin.call(method, path, holder, json={"update_ids": [1]}) as response:
            assert response.status == (200 if holder in allowed else 403), holder
    async with admin.call(method, path, None, json={"update_ids": [1]}) as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("value", ["Bearer wrong-token-of-tests", "Bearer \xe9", "Basic dmlld2Vy", "Bearer "])
async def test_a_wrong_token(admin: Admin, value: str) -> None:
    async with admin.call("GET", LIST, None, headers={"Authorization": value}) as response:
        found = await response.json(content_type="application/problem+json")
        assert response.status == 401
    assert found == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "A bearer token of ADMIN_TOKENS is needed.",
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/nothing", None, 404),
        ("DELETE", LIST, None, 405),
        ("GET", f"{LIST}?limit=0", None, 422),
        ("GET", f"{LIST}?limit=201", None, 422),
        ("GET", f"{LIST}?from=yesterday", None, 422),
        ("GET", f"{LIST}?from=2026-03-01T12:00:00", None, 422),
        ("GET", f"{LIST}?chat_id={2**63}", None, 422),
        ("GET", f"/api/v1/bots/{2**63}/failed-updates", None, 422),
        ("GET", f"{LIST}?after=nonsense", None, 400),
        ("GET", f"{LIST}?after=%00", None, 400),
        ("GET", f"{LIST}?kind=%00", None, 422),
        ("POST", f"{LIST}/retry", {}, 422),
        ("POST", f"{LIST}/retry", {"update_ids": []}, 422),
        ("POST", f"{LIST}/retry", {"update_ids": [2**63]}, 422),
        ("POST", f"{LIST}/retry", {"update_ids": [1.5]}, 422),
        ("POST", f"{LIST}/retry", {"update_ids": [1], "all": True}, 422),
        ("POST", f"{LIST}/discard", {"filter": {"chat": 1}}, 422),
        ("POST", f"{LIST}/discard", {"ids": [1]}, 422),
        ("POST", f"{LIST}/retry", {"filter": {}}, 400),
        ("POST", f"{LIST}/discard", {"filter": {"kind": None}}, 400),
        ("POST", f"{LIST}/discard", {"all": "yes"}, 422),
        ("POST", f"{LIST}/discard", {"all": "false", "update_ids": [1]}, 422),
        ("POST", f"{LIST}/discard", {"all": 1}, 422),
        ("POST", f"{LIST}/discard", {"all": False}, 422),
    ],
)
async def test_every_refusal_is_a_problem(
    admin: Admin, method: str, path: str, body: object, status: int
) -> None:
    async with admin.call(method, path, json=body) as response:
        assert response.status == status
        assert response.content_type == "application/problem+json"
        found = await response.json(content_type=None)
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    assert (status == 422) == ("errors" in found)


async def test_a_question_that_takes_too_long_is_given_up(admin: Admin, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE failed IN ACCESS EXCLUSIVE MODE")
        problem = await admin.get(LIST, status=503)
        assert "slow" in problem["detail"]
    assert (await admin.get(LIST))["items"] == []


async def test_openapi_describes_the_calls(admin: Admin) -> None:
    document = await admin.get("/api/v1/openapi.json", None)
    retry = document["paths"]["/api/v1/bots/{bot_id}/failed-updates/retry"]["post"]
    assert "application/problem+json" in retry["responses"]["403"]["content"]
    assert document["components"]["schemas"]["Choice"]["examples"][1] == {"all": True}
    assert "/login" not in document["paths"]
