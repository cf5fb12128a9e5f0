"""ADMIN_TOKENS and sessions: who somebody is, and that nothing else is somebody."""

import pytest
from starlette.responses import Response

from pillarbox.errors import SettingError
from pillarbox.settings import load
from pillarbox_admin.holders import Holders, Right, parse
from pillarbox_admin.sessions import LASTS, Sessions
from pillarbox_admin.settings import AdminSettings

TOKEN = "0123456789abcdef"
URLS = {"database_url": "postgresql://localhost/x", "redis_url": "redis://localhost"}


def settings(tokens: str) -> AdminSettings:
    return load(AdminSettings, admin_tokens=tokens, **URLS)


def test_names_rights_and_tokens() -> None:
    holders = settings(f"ops:read+act:{TOKEN}1, see.it:payload:{TOKEN}:with:colons\n").holders
    ops = holders.with_token(f"{TOKEN}1".encode())
    assert ops is not None
    assert (ops.name, set(ops.rights)) == ("ops", {Right.READ, Right.ACT})
    other = holders.with_token(f"{TOKEN}:with:colons".encode())
    assert other is not None
    assert other.rights == {Right.PAYLOAD}
    assert holders.with_token(TOKEN.encode()) is None
    assert holders.with_token(b"") is None


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ("", "ADMIN_TOKENS"),
        (TOKEN, "entry 1 is not `name:rights:token`"),
        (f"ops:read:{TOKEN},a b:read:{TOKEN}2", "entry 2 is not `name:rights:token`"),
        (f"ops:write:{TOKEN}", "entry 1 has rights other than read, act and payload"),
        (f"ops::{TOKEN}", "entry 1 has rights other than"),
        ("ops:read:short", "entry 1 needs a token of 16 or more"),
        ("ops:read:kaum-zu-glauben-é", "entry 1 needs a token of 16 or more"),
        (f"ops:read:{TOKEN},ops:act:{TOKEN}2", "entry 2 repeats a name or a token"),
        (f"ops:read:{TOKEN},two:act:{TOKEN}", "entry 2 repeats a name or a token"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_without_the_token(tokens: str, said: str) -> None:
    with pytest.raises(SettingError) as caught:
        settings(tokens)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_no_repr_shows_a_token() -> None:
    given = settings(f"ops:read:{TOKEN}")
    assert TOKEN not in f"{given!r} {parse(f'ops:read:{TOKEN}')!r}"


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def cookie_of(sessions: Sessions, token: str) -> str:
    response = Response()
    assert sessions.begin(response, token, secure=True) is not None
    header = response.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Secure", "Path=/"} <= set(header.split("; "))
    return header.partition("=")[2].partition(";")[0]


def test_a_session_ends_with_its_time_and_with_its_token() -> None:
    clock = Clock()
    sessions = Sessions(Holders([parse(f"ops:read:{TOKEN}")]), clock)
    cookie = cookie_of(sessions, TOKEN)
    holder = sessions.holder(cookie)
    assert holder is not None
    assert holder.name == "ops"
    assert TOKEN not in cookie
    assert Sessions(Holders([parse(f"ops:read:{TOKEN}2")]), clock).holder(cookie) is None
    assert Sessions(Holders([]), clock).holder(cookie) is None
    clock.now += LASTS
    assert sessions.holder(cookie) is None


def test_no_forged_cookie_is_a_session() -> None:
    sessions = Sessions(Holders([parse(f"ops:read:{TOKEN}"), parse(f"boss:act:{TOKEN}2")]), Clock())
    name, until, signature = cookie_of(sessions, TOKEN).split(":")
    forged = [
        None, "", "ops", "ops::", f"{name}:{until}:", f"{name}:{until}", f"boss:{until}:{signature}",
        f"{name}:{int(until) + 1}:{signature}", f"{name}:{until}:{signature}x", f"{name}:²:{signature}",
        f"{name}:{until}:{'é' * 64}", f"{name}:{'9' * 5000}:{signature}",
    ]  # fmt: skip
    assert [sessions.holder(cookie) for cookie in forged] == [None] * len(forged)


def test_a_token_that_nobody_holds_begins_no_session() -> None:
    response = Response()
    sessions = Sessions(Holders([parse(f"ops:read:{TOKEN}")]))
    assert sessions.begin(response, f"{TOKEN}2", secure=True) is None
    assert "set-cookie" not in response.headers
