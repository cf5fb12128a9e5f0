"""The page over real HTTP: sessions, forms, and what other sites cannot do with them."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.admin import BOT, OTHER, TOKENS, Admin, fail, rows, running_admin

HERE = {"Sec-Fetch-Site": "same-origin"}
PAGE = f"/bots/{BOT}"


@pytest.fixture
async def admin(postgres_url: str, valkey_url: str) -> AsyncIterator[Admin]:
    async with running_admin(postgres_url, valkey_url) as admin:
        yield admin


async def sign_in(admin: Admin, holder: str = "operator", **form: str) -> str:
    form = {"token": TOKENS[holder][1]} | form
    async with admin.call("POST", "/login", None, data=form, headers=HERE) as response:
        assert response.status == 303
        return response.headers["Location"]


async def page(admin: Admin, path: str, status: int = 200) -> str:
    async with admin.call("GET", path, None) as response:
        text = await response.text()
        assert response.status == status, text
        assert response.content_type == "text/html"
    return text


async def act(admin: Admin, path: str, form: list[tuple[str, str]], **more: Any) -> tuple[int, str, str]:
    headers = more.pop("headers", HERE)
    async with admin.call("POST", path, None, data=form, headers=headers) as response:
        return response.status, response.headers.get("Location", ""), await response.text()


async def test_without_a_session_there_is_only_the_login(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1)
    for path in ("/", PAGE, f"{PAGE}/failed/1", "/malformed", "/outbound"):
        text = await page(admin, path, 401)
        assert f'name="next" value="{path}"' in text
        assert str(BOT) not in text.replace(f'value="{path}"', "")


async def test_signing_in_leads_back_and_signing_out_ends_it(admin: Admin) -> None:
    assert await sign_in(admin, next=f"{PAGE}?kind=message") == f"{PAGE}?kind=message"
    assert "operator" in await page(admin, "/")
    await act(admin, "/logout", [])
    await page(admin, "/", 401)


@pytest.mark.parametrize("address", ["//evil.example", "/\\evil.example", "https://x", "/\t/x", ""])
async def test_signing_in_leads_nowhere_else(admin: Admin, address: str) -> None:
    assert await sign_in(admin, next=address) == "/"


async def test_a_wrong_token_begins_no_session(admin: Admin) -> None:
    status, _, text = await act(admin, "/login", [("token", "wrong-token-of-tests")])
    assert status == 401
    assert "Nobody has this token" in text
    assert "wrong-token-of-tests" not in text
    await page(admin, "/", 401)


async def test_the_cookie_is_strict_and_out_of_reach_of_scripts(admin: Admin) -> None:
    form = {"token": TOKENS["viewer"][1]}
    async with admin.call("POST", "/login", None, data=form, headers=HERE) as response:
        attributes = set(response.headers["Set-Cookie"].split("; ")[1:])
    assert attributes == {"HttpOnly", "Max-Age=7200", "Path=/", "SameSite=strict"}


async def test_failed_updates_stand_in_groups_of_one_error(admin: Admin, postgres_url: str) -> None:
    for update_id in (1, 2, 3):
        fail(postgres_url, update_id, minutes=update_id)
    fail(postgres_url, 4, error="ValueError: <script> at bot.py:9")
    fail(postgres_url, 5, bot_id=OTHER)
    await sign_in(admin, "master")
    text = await page(admin, PAGE)
    groups = [" ".join(re.sub("<[^>]+>", "", h2).split()) for h2 in re.findall("<h2>(.*?)</h2>", text, re.S)]
    assert groups == ["KeyError at bot.py:31 3", "ValueError at bot.py:9 1"]
    assert re.findall('name="update_id" value="(.*?)"', text) == ["1", "2", "3", "4"]
    assert "Retry all 4" in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    filtered = await page(admin, f"{PAGE}?error=ValueError&kind=&chat_id=")
    assert re.findall('name="update_id" value="(.*?)"', filtered) == ["4"]
    assert "Retry these 1" in filtered


async def test_older_failures_are_a_page_away(admin: Admin, postgres_url: str) -> None:
    for update_id in range(1, 102):
        fail(postgres_url, update_id, minutes=update_id)
    await sign_in(admin)
    text = await page(admin, PAGE)
    older = re.search(r'href="(\?after=[^"]+)">Older', text)
    assert older is not None
    assert re.findall('name="update_id" value="(.*?)"', await page(admin, PAGE + older[1])) == ["101"]


async def test_chosen_updates_are_retried(admin: Admin, postgres_url: str) -> None:
    for update_id in (1, 2, 3):
        fail(postgres_url, update_id)
    await sign_in(admin)
    form = [("which", "chosen"), ("update_id", "1"), ("update_id", "3"), ("update_id", "99")]
    status, location, _ = await act(admin, f"{PAGE}/retry", form)
    assert status == 303
    assert rows(postgres_url, "SELECT update_id FROM updates ORDER BY 1") == [(1,), (3,)]
    assert "2 given back to the bot, to be handled again. 1 not in the failed list any more." in await page(
        admin, location
    )


async def test_nothing_chosen_moves_nothing(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1)
    await sign_in(admin)
    for verb in ("retry", "discard"):
        status, location, _ = await act(admin, f"{PAGE}/{verb}", [("which", "chosen")])
        assert status == 303
        assert "Nothing was chosen." in await page(admin, location)
    assert rows(postgres_url, "SELECT count(*) FROM failed") == [(1,)]


@pytest.mark.parametrize(
    ("form", "label", "left"),
    [
        ([("which", "chosen"), ("update_id", "1")], "Discard 1 failed update?", [2, 3, 4]),
        ([("which", "like"), ("error", "KeyError")], "Discard 2 failed updates?", [3, 4]),
        ([("which", "all")], "Discard all 3 failed updates?", [4]),
    ],
)
async def test_discarding_asks_first(
    admin: Admin, postgres_url: str, form: list[tuple[str, str]], label: str, left: list[int]
) -> None:
    fail(postgres_url, 1)
    fail(postgres_url, 2)
    fail(postgres_url, 3, error="ValueError")
    fail(postgres_url, 4, bot_id=OTHER)
    await sign_in(admin)
    status, _, text = await act(admin, f"{PAGE}/discard", form)
    assert status == 200
    assert label in text
    assert rows(postgres_url, "SELECT count(*) FROM failed") == [(4,)]
    sure = re.findall('<input type="hidden" name="(.*?)" value="(.*?)">', text)
    status, _, _ = await act(admin, f"{PAGE}/discard", sure)
    assert status == 303
    assert rows(postgres_url, "SELECT update_id FROM failed ORDER BY 1") == [(n,) for n in left]
    assert set(rows(postgres_url, 'SELECT "by", action FROM audit')) == {("operator", "discard")}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://{host}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
async def test_a_form_of_another_site_does_nothing(
    admin: Admin, postgres_url: str, headers: dict[str, str]
) -> None:
    fail(postgres_url, 1)
    await sign_in(admin)
    host = admin.url.removeprefix("http://")
    headers = {name: value.format(host=host) for name, value in headers.items()}
    for path in (f"{PAGE}/retry", f"{PAGE}/discard"):
        status, _, _ = await act(admin, path, [("which", "all"), ("sure", "true")], headers=headers)
        assert status == 403
    status, _, _ = await act(admin, "/logout", [], headers=headers)
    assert status == 403
    assert rows(postgres_url, "SELECT count(*) FROM failed") == [(1,)]


async def test_where_browsers_send_no_fetch_metadata_the_origin_decides(
    admin: Admin, postgres_url: str
) -> None:
    fail(postgres_url, 1)
    await sign_in(admin)
    status, _, _ = await act(admin, f"{PAGE}/retry", [("which", "all")], headers={"Origin": admin.url})
    assert status == 303


async def test_acts_need_a_post_and_the_right(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1)
    await sign_in(admin, "viewer")
    text = await page(admin, PAGE)
    assert "checkbox" not in text
    assert "Retry" not in text
    assert (await act(admin, f"{PAGE}/retry", [("which", "all")]))[0] == 403
    await page(admin, f"{PAGE}/retry", 405)
    assert rows(postgres_url, "SELECT count(*) FROM failed") == [(1,)]


async def test_the_payload_needs_its_right(admin: Admin, postgres_url: str) -> None:
    fail(postgres_url, 1, body=b'{"text":"what they wrote"}', error="KeyError: 'in their words' at bot.py:31")
    await sign_in(admin, "viewer")
    for path in (PAGE, f"{PAGE}/failed/1"):
        text = await page(admin, path)
        assert "KeyError" in text
        assert "bot.py:31" in text
        assert "what they wrote" not in text
        assert "in their words" not in text
    await sign_in(admin, "insider")
    text = await page(admin, f"{PAGE}/failed/1")
    assert "what they wrote" in text
    assert "in their words" in text
    assert "in their words" in await page(admin, PAGE)
    await page(admin, f"/bots/{OTHER}/failed/1", 404)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/bots/x", 422),
        (f"{PAGE}?chat_id=x", 422),
        (f"{PAGE}?after=x", 400),
        ("/static/x", 404),
    ],
)
async def test_what_is_wrong_is_a_page(admin: Admin, path: str, status: int) -> None:
    await sign_in(admin)
    assert "<h1>" in await page(admin, path, status)


async def test_every_answer_forbids_scripts_frames_and_caches(admin: Admin) -> None:
    for path in ("/", "/nothing", "/api/v1/bots", "/api/v1/openapi.json"):
        async with admin.call("GET", path, None) as response:
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src" not in policy
            assert "frame-ancestors 'none'" in policy
            assert response.headers["Cache-Control"] == "private, no-store"
            assert response.headers["X-Content-Type-Options"] == "nosniff"
