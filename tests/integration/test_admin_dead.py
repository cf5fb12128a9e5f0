"""Dead messages, cancel and the audit over admin's real HTTP, its page, and Valkey."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from pillarbox.outbound.envelope import Envelope, encode
from pillarbox.outbound.lanes import Filing, Lanes
from pillarbox_solo.valkey import ValkeyServer
from tests.support.admin import TOKENS, Admin, running_admin
from tests.support.dying import BOT, OTHER, bury, queue_of, turn
from tests.support.servers import running

QUEUE = "pillarbox:outbound"
API = "/api/v1/outbound/dead"
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator["Redis"]:
    async with Redis.from_url(valkey_url) as redis:
        yield redis


def say(chat: Any, **more: Any) -> bytes:
    return encode(Envelope("sendMessage", {"chat_id": chat, "text": "secret"}, bot=BOT, **more))


async def refused(redis: Any, *elements: bytes, reason: str = "refused") -> None:
    detail = "400 Bad Request: can't parse secret" if reason == "refused" else ""
    await bury(redis, elements, reason=reason, detail=detail, queue=QUEUE)


async def test_what_is_shown_to_whom(admin: Admin, redis: "Redis") -> None:
    await refused(redis, say(42, id="a:1"))
    page = await admin.get(API)
    (item,) = page["items"]
    assert item.pop("died_at")
    assert item == {
        "number": 1, "bot_id": BOT, "lane": f"{BOT}:interactive:42", "chat": "42", "id": "a:1",
        "method": "sendMessage", "reason": "refused", "detail": "400", "attempts": 2,
        "first_error": "answered:400", "last_error": "answered:400", "size": len(say(42, id="a:1")),
    }  # fmt: skip
    (item,) = (await admin.get(API, "insider"))["items"]
    assert item["detail"].endswith("secret")
    await admin.get(f"{API}/1", "viewer", status=403)
    whole = await admin.get(f"{API}/1", "insider")
    assert whole["payload"]["params"]["text"] == "secret"
    assert base64.b64decode(whole["payload_base64"]) == say(42, id="a:1")
    await admin.get(f"{API}/2", "insider", status=404)
    await admin.get(f"{API}/1?bot_id={OTHER}", "insider", status=404)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"bot_id={BOT}", [3, 2, 1]),
        ("reason=doubt", [2]),
        ("method=sendmessage&chat_id=42", [1]),
        ("chat_id=%40news", [3]),
        ("id=a%2F1", [1]),
        ("numbers=1&numbers=3&numbers=9", [3, 1]),
        ("from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z", []),
    ],
)
async def test_filters(admin: Admin, redis: "Redis", query: str, expected: list[int]) -> None:
    await refused(redis, say(42, id="a/1"))
    await refused(redis, say(43), reason="doubt")
    await refused(redis, say("@News"))
    assert [item["number"] for item in (await admin.get(f"{API}?{query}"))["items"]] == expected


async def test_retry_and_discard(admin: Admin, redis: "Redis") -> None:
    await refused(redis, *(say(n) for n in range(4)))
    await admin.post(f"{API}/retry", {"numbers": [1]}, "viewer", status=403)
    assert await admin.post(f"{API}/retry", {"numbers": [1, 99]}) == {
        "moved": 1, "unknown": [99], "refused": [],
    }  # fmt: skip
    assert await admin.post(f"{API}/discard", {"filter": {"chat_id": 1}}) == {
        "moved": 1, "unknown": [], "refused": [],
    }  # fmt: skip
    wrong: list[dict[str, Any]]
    wrong = [{}, {"filter": {}}, {"numbers": [1], "all": True}, {"numbers": []}, {"filter": {"x": 1}}]
    for choice in wrong:
        await admin.post(f"{API}/retry", choice, status=400 if choice == {"filter": {}} else 422)
    assert (await admin.post(f"{API}/discard", {"all": True}))["moved"] == 2
    assert await queue_of(redis, 0, QUEUE) == [say(0)]
    acts = (await admin.get("/api/v1/outbound"))["acts"]
    assert acts == {"retry": 1, "edit": 0, "discard": 3, "cancel": 0}
    rows = (await admin.get("/api/v1/outbound/audit"))["items"]
    assert [(row["action"], row["by"], row["number"]) for row in rows][-2:] == [
        ("discard", "operator", 2), ("retry", "operator", 1),
    ]  # fmt: skip
    assert "secret" not in json.dumps(rows)


async def test_many_are_a_job(admin: Admin, redis: "Redis") -> None:
    await Lanes(redis, QUEUE).file([Filing(b"x%d" % n, BOT) for n in range(2500)])
    job = await admin.post(f"{API}/discard", {"filter": {"bot_id": BOT}}, status=202)
    assert job["bot_id"] == BOT
    done = await admin.get(f"/api/v1/jobs/{job['job']}?wait=20", "operator")
    assert done["state"] == "done"
    assert done["result"] == {"moved": 2500, "unknown": [], "refused": []}


async def test_edit(admin: Admin, redis: "Redis") -> None:
    await refused(redis, say(1, id="a"))
    problem = await admin.post(f"{API}/1/edit", {"method": "setWebhook"}, status=422)
    assert problem["reason"] == "method_refused"
    problem = await admin.post(f"{API}/1/edit", {"params": {"text": "\ud800"}}, status=422)
    await admin.post(f"{API}/1/edit", {"params": {}}, "viewer", status=403)
    changes = {"params": {"chat_id": 2, "text": "better"}}
    assert (await admin.post(f"{API}/9/edit", changes))["unknown"] == [9]
    assert (await admin.post(f"{API}/1/edit", changes))["moved"] == 1
    (element,) = await queue_of(redis, 2, QUEUE)
    assert json.loads(element)["params"] == changes["params"]


async def test_cancel(admin: Admin, redis: "Redis") -> None:
    path = f"/api/v1/bots/{BOT}/messages/cancel"
    await Lanes(redis, QUEUE).file(
        [Filing(say(1, id="../1")), Filing(say(1, id="b")), Filing(say(2, id="c"))]
    )
    await admin.post(path, {"id": "../1"}, "viewer", status=403)
    assert await admin.post(path, {"id": "../1"}) == {"cancelled": True, "in_doubt": False}
    assert len(await turn(redis, queue=QUEUE)) == 2
    assert (await admin.post(path, {"id": "b"}, status=409))["outcome"] == "sending"
    assert (await admin.post(path, {"id": "../1"}, status=409))["outcome"] == "ended"
    assert (await admin.post(path, {"id": "d"}, status=404))["outcome"] == "unknown"
    await admin.post(path, {"id": "a\nb"}, status=422)


async def sign_in(admin: Admin, holder: str) -> None:
    data = {"token": TOKENS[holder][1]}
    async with admin.call("POST", "/login", None, data=data, headers=SAME_SITE):
        pass


async def text_of(admin: Admin, path: str) -> str:
    async with admin.call("GET", path, None) as response:
        assert response.status == 200, await response.text()
        return await response.text()


async def sent(admin: Admin, path: str, data: list[tuple[str, str]], status: int = 303) -> str:
    async with admin.call("POST", path, None, data=data, headers=SAME_SITE) as response:
        assert response.status == status, await response.text()
        return response.headers.get("Location", await response.text())


async def test_the_page(admin: Admin, redis: "Redis") -> None:
    await refused(redis, *(say(n, id=f"a:{n}") for n in range(5)))
    await Lanes(redis, QUEUE).file([Filing(b"<b>secret", BOT)])
    await sign_in(admin, "viewer")
    page = await text_of(admin, "/outbound")
    assert "Retry chosen" not in page
    assert "secret" not in page + await text_of(admin, "/outbound/dead/1")
    await sign_in(admin, "operator")
    assert "Retry chosen" in await text_of(admin, "/outbound")
    back = await sent(admin, "/outbound/dead/retry", [("which", "chosen"), ("number", "1"), ("number", "6")])
    said = await text_of(admin, back)
    assert "1 given back to the senders. 1 cannot be sent as they are; they stay." in said
    page = await text_of(admin, "/outbound?chat_id=2")
    assert "/outbound/dead/3" in page
    assert "/outbound/dead/4" not in page
    like = [("which", "like"), ("chat_id", "2")]
    assert "Discard 1 dead message?" in await sent(admin, "/outbound/dead/discard", like, 200)
    back = await sent(admin, "/outbound/dead/discard", [*like, ("sure", "true")])
    assert "1 discarded." in await text_of(admin, back)
    await sent(admin, "/outbound/dead/discard", [("which", "like")], 400)
    back = await sent(admin, "/outbound/dead/retry", [("which", "all")])
    assert "3 given back" in await text_of(admin, back)
    await sign_in(admin, "master")
    assert "&lt;b&gt;secret" in await text_of(admin, "/outbound/dead/6")


async def test_a_full_redis(tmp_path: Path, postgres_url: str) -> None:
    """A retry is refused, and says why; a discard and a cancel work, and make room."""
    server = ValkeyServer(tmp_path / "valkey")
    with running(server):
        async with running_admin(postgres_url, server.url) as admin, Redis.from_url(server.url) as redis:
            await refused(redis, *(say(n, id=f"a:{n}") for n in range(3)))
            await Lanes(redis, QUEUE).file([Filing(say(9, id="w"))])
            await redis.config_set("maxmemory", "1mb")
            for path, body in (
                (f"{API}/retry", {"all": True}),
                (f"{API}/1/edit", {"params": {"chat_id": 1}}),
            ):
                problem = await admin.post(path, body, status=503)
                assert "full" in problem["detail"]
            assert len((await admin.get(API))["items"]) == 3
            assert (await admin.post(f"{API}/discard", {"numbers": [1]}))["moved"] == 1
            assert (await admin.post(f"/api/v1/bots/{BOT}/messages/cancel", {"id": "w"}))["cancelled"]
            await redis.config_set("maxmemory", "0")
            assert (await admin.post(f"{API}/retry", {"all": True}))["moved"] == 2
